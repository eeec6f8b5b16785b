//! The program before it was annotated.

use std::error::Error;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;

const SIDE: usize = 512;
const STEPS: usize = 100;
const PTX: &str = include_str!("../../../../kernels/ptx/workloads.ptx");

unsafe extern "C" {
    fn vectors_open(ptx: *const c_char, side: u32, opened: *mut *mut c_void) -> c_int;
    fn vectors_upload(vectors: *mut c_void, x: *const f32) -> c_int;
    fn vectors_add(vectors: *mut c_void, a: f32) -> c_int;
    fn vectors_multiply(vectors: *mut c_void) -> c_int;
    fn vectors_download(vectors: *mut c_void, y: *mut f32, product: *mut f32) -> c_int;
}

fn check(error: c_int) -> Result<(), String> {
    if error == 0 { Ok(()) } else { Err(format!("error {error} of CUDA or cuBLAS")) }
}

/// Vectors of `SIDE * SIDE` elements, which live as long as the program.
struct Vectors(*mut c_void);

impl Vectors {
    fn open() -> Result<Self, Box<dyn Error>> {
        let mut opened = ptr::null_mut();
        // SAFETY: the PTX ends in NUL.
        check(unsafe { vectors_open(CString::new(PTX)?.as_ptr(), SIDE as u32, &mut opened) })?;
        Ok(Self(opened))
    }

    fn upload(&mut self, x: &[f32]) -> Result<(), String> {
        assert_eq!(x.len(), SIDE * SIDE);
        // SAFETY: `x` has the vectors' length.
        check(unsafe { vectors_upload(self.0, x.as_ptr()) })
    }

    fn add(&mut self, a: f32) -> Result<(), String> {
        // SAFETY: the vectors are open.
        check(unsafe { vectors_add(self.0, a) })
    }

    fn multiply(&mut self) -> Result<(), String> {
        // SAFETY: the vectors are open.
        check(unsafe { vectors_multiply(self.0) })
    }

    fn download(&self) -> Result<(Vec<f32>, Vec<f32>), String> {
        let (mut y, mut product) = (vec![0.0; SIDE * SIDE], vec![0.0; SIDE * SIDE]);
        // SAFETY: both have the vectors' length.
        check(unsafe { vectors_download(self.0, y.as_mut_ptr(), product.as_mut_ptr()) })?;
        Ok((y, product))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut vectors = Vectors::open()?;
    let input = vec![2.0; SIDE * SIDE];
    for _ in 0..STEPS {
        vectors.upload(&input)?;
        vectors.add(1.0)?;
        vectors.multiply()?;
    }
    let (y, product) = vectors.download()?;
    let expected = (2.0 * STEPS as f32, 4.0 * SIDE as f32);
    assert!(y.iter().all(|&y| y == expected.0), "computed {:?}…", &y[..4]);
    assert!(product.iter().all(|&p| p == expected.1), "computed {:?}…", &product[..4]);
    println!("{STEPS} steps: every element is {}, of the product {}", expected.0, expected.1);
    Ok(())
}
