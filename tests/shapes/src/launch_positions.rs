//! Launches in every position that a launch can take.

pub mod statement_positions {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn all(stream: &CudaStream) -> Result<u8, Refused> {
        stream.launch_builder("question mark").launch(1)?;
        let _ = stream.launch_builder("let underscore").launch(2);
        let result = stream.launch_builder("let").launch(13);
        let Err(Refused(n)) = stream.launch_builder("let else").launch(13) else {
            return result.map(|()| 0);
        };
        let annotated: Result<(), Refused> = stream.launch_builder("typed let").launch(3);
        annotated?;
        stream.launch_builder("unwrapped").launch(n + 1).unwrap();
        return stream.launch_builder("returned").launch(4).map(|()| n as u8);
    }

    pub fn run() {
        log!("{:?}", all(&CudaStream::new(1)));
    }
}

pub mod tail_position {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn plain(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("plain").launch(1)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn chained(stream: &CudaStream) -> Result<u8, String> {
        stream.launch_builder("chained").launch(13).map(|()| 1).map_err(|error| error.to_string())
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn wrapped(stream: &CudaStream) -> Result<(), Box<dyn std::error::Error>> {
        Ok(stream.launch_builder("wrapped").launch(13)?)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn branched(stream: &CudaStream, left: bool) -> Result<(), Refused> {
        if left {
            stream.launch_builder("left").launch(1)
        } else {
            stream.launch_builder("right").launch(2)
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn matched(stream: &CudaStream, n: u32) -> Result<(), Refused> {
        match n {
            0 => Ok(()),
            1 => stream.launch_builder("one").launch(1),
            n => stream.launch_builder("many").launch(n),
        }
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?} {:?}", plain(&stream), chained(&stream), wrapped(&stream));
        log!("{:?} {:?}", branched(&stream, true), branched(&stream, false));
        log!("{:?} {:?}", matched(&stream, 0), matched(&stream, 13));
    }
}

pub mod conditions_and_scrutinees {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn all(stream: &CudaStream) -> u32 {
        let mut n = 10;
        if stream.launch_builder("if").launch(1).is_ok() && n > 0 {
            n += 1;
        }
        if let Err(Refused(code)) = stream.launch_builder("if let").launch(13) {
            n += code;
        }
        match stream.launch_builder("match").launch(n) {
            Ok(()) if stream.launch_builder("guard").launch(13).is_err() => n += 100,
            Ok(()) => n = 0,
            Err(Refused(code)) => n = code,
        }
        while stream.launch_builder("while").launch(n).is_ok() {
            n = 13;
        }
        while let Ok(()) = stream.launch_builder("while let").launch(n) {
            n = 0;
        }
        n
    }

    pub fn run() {
        log!("{}", all(&CudaStream::new(1)));
    }
}

pub mod loops {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn all(stream: &CudaStream) -> Result<u32, Refused> {
        for i in 0..2 {
            stream.launch_builder("for").arg(&i).launch(i)?;
        }
        let mut n = 0;
        let last = loop {
            n += 1;
            if n == 1 {
                continue;
            }
            break stream.launch_builder("break").launch(n);
        };
        last?;
        let block = 'block: {
            if n > 0 {
                break 'block stream.launch_builder("labelled").launch(n);
            }
            Ok(())
        };
        block.and(Ok(n))
    }

    pub fn run() {
        log!("{:?}", all(&CudaStream::new(1)));
    }
}

pub mod exits_within_the_arguments {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn all(stream: &CudaStream, grids: &[Option<u32>]) -> Result<u32, Refused> {
        let mut total = 0;
        for grid in grids {
            stream.launch_builder("loop").launch(match *grid {
                Some(0) => continue,
                Some(1) => break,
                Some(2) => return Ok(total),
                Some(n) => n,
                None => return Err(Refused(total)),
            })?;
            total += 1;
        }
        Ok(total + 100)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn question_mark(stream: &CudaStream, grid: Option<u32>) -> Option<()> {
        stream.launch_builder("argument").arg(&grid?).launch(grid? + 1).ok()
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn panics(stream: &CudaStream, grid: Option<u32>) -> bool {
        stream.launch_builder("panics").launch(grid.unwrap()).is_ok()
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?}", all(&stream, &[Some(0), Some(5), Some(1), None]));
        log!("{:?}", all(&stream, &[Some(5), Some(6), Some(2)]));
        log!("{:?}", all(&stream, &[Some(5), None]));
        log!("{:?} {:?}", question_mark(&stream, None), question_mark(&stream, Some(1)));
        attempt(|| panics(&stream, None));
    }
}

pub mod launch_in_a_launch {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn nested(stream: &CudaStream) -> Result<(), Refused> {
        stream.launch_builder("outer").launch(match stream.launch_builder("inner").launch(13) {
            Ok(()) => 1,
            Err(Refused(n)) => n + 1,
        })
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn chained(stream: &CudaStream) -> Result<(), Refused> {
        stream
            .launch_builder("first")
            .launch(1)
            .and_then(|()| Ok(()))
            .and(stream.launch_builder("second").launch(2))
    }

    pub fn run() {
        log!("{:?} {:?}", nested(&CudaStream::new(1)), chained(&CudaStream::new(2)));
    }
}

pub mod attributes_on_launches {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn all(stream: &CudaStream) -> Result<(), Refused> {
        #[cfg(any())]
        stream.launch_builder("left out").missing().launch(1)?;
        #[cfg(all())]
        stream.launch_builder("kept").launch(2)?;
        #[allow(unused_must_use)]
        stream.launch_builder("allowed").launch(13);
        #[cfg(any())]
        stream.launch_builder("left out").launch(Missing);
        #[rustfmt::skip]
        let result = stream . launch_builder ( "skipped" ) . launch ( 3 );
        #[cfg(all())]
        let result = result.and(stream.launch_builder("let").launch(4));
        #[cfg(any())]
        {
            stream.launch_builder("in a block").launch(5)?;
        }
        result
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn tail(stream: &CudaStream) -> Result<(), Refused> {
        #[cfg(any())]
        return stream.launch_builder("left out").launch(1);
        #[cfg(all())]
        stream.launch_builder("tail").launch(2)
    }

    pub fn run() {
        log!("{:?} {:?}", all(&CudaStream::new(1)), tail(&CudaStream::new(2)));
    }
}

pub mod launch_temporaries {
    use crate::support::*;

    struct Device;

    impl Device {
        fn builder(&self, name: &'static str) -> Launcher {
            Launcher(Noisy(name))
        }
    }

    struct Launcher(Noisy);

    impl Launcher {
        fn launch(&self, _: &Noisy) -> Option<&Noisy> {
            log!("launch {}", self.0.0);
            Some(&self.0)
        }
    }

    #[cfg_attr(feature = "timed", gpu_timed(clock = "host"))]
    fn host(device: &Device) -> usize {
        device.builder("statement").launch(&Noisy("argument"));
        let n = device.builder("let").launch(&Noisy("argument")).map_or(0, Noisy::len);
        if device.builder("condition").launch(&Noisy("argument")).is_some() {
            log!("in the branch");
        }
        match device.builder("scrutinee").launch(&Noisy("argument")) {
            Some(noisy) => log!("in the arm {}", noisy.len()),
            None => {}
        }
        let _local = Noisy("local");
        device.builder("tail").launch(&Noisy("argument")).map_or(n, Noisy::len)
    }

    #[cfg_attr(feature = "timed", gpu_timed(stream = stream))]
    fn events(device: &Device, stream: &CudaStream) -> usize {
        device.builder("statement").launch(&Noisy("argument"));
        let n = device.builder("let").launch(&Noisy("argument")).map_or(0, Noisy::len);
        if device.builder("condition").launch(&Noisy("argument")).is_some() {
            log!("in the branch");
        }
        match device.builder("scrutinee").launch(&Noisy("argument")) {
            Some(noisy) => log!("in the arm {}", noisy.len()),
            None => {}
        }
        let _local = Noisy("local");
        log!("{:?}", stream);
        device.builder("tail").launch(&Noisy("argument")).map_or(n, Noisy::len)
    }

    pub fn run() {
        log!("{}", host(&Device));
        log!("{}", events(&Device, &CudaStream::new(1)));
    }
}

pub mod borrows_across_launches {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn held<'a>(stream: &'a CudaStream, list: &'a mut Vec<u32>) -> Result<&'a mut u32, Refused> {
        let mut builder = stream.launch_builder("held");
        for n in list.iter_mut() {
            builder.arg(n).launch(*n)?;
            *n += 1;
        }
        list.push(0);
        let last = list.last_mut().unwrap();
        builder.launch(*last)?;
        Ok(last)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn two_phase(stream: &CudaStream, mut list: Vec<u32>) -> Vec<u32> {
        list.push(list.len() as u32);
        list.push(stream.launch_builder("two-phase").launch(list[0]).map_or(0, |()| list[1]));
        list
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        let mut list = vec![1, 2];
        log!("{:?}", held(&stream, &mut list).map(|n| std::mem::replace(n, 9)));
        log!("{:?} {:?}", list, two_phase(&stream, vec![5]));
    }
}

pub mod launches_out_of_sight {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn closure(stream: &CudaStream) -> Result<(), Refused> {
        let go = |grid| stream.launch_builder("closure").launch(grid);
        go(1)?;
        [2, 13].iter().try_for_each(|grid| stream.launch_builder("inline").launch(*grid))
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn nested_item(stream: &CudaStream) -> Result<(), Refused> {
        fn go(stream: &CudaStream) -> Result<(), Refused> {
            stream.launch_builder("nested").launch(1)
        }
        go(stream)
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn both(stream: &CudaStream) -> Result<(), Refused> {
        let late = || stream.launch_builder("late").launch(1);
        stream.launch_builder("seen").launch(2)?;
        late()
    }

    #[cfg_attr(feature = "timed", gpu_timed(scope = "launches"))]
    fn some_of_them(stream: &CudaStream) -> Result<(), Refused> {
        let late = || stream.launch_builder("late").launch(1);
        stream.launch_builder("seen").launch(2)?;
        late()
    }

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn none(stream: &CudaStream) -> &CudaStream {
        stream
    }

    pub fn run() {
        let stream = CudaStream::new(1);
        log!("{:?} {:?}", closure(&stream), nested_item(&stream));
        log!("{:?} {:?} {:?}", both(&stream), some_of_them(&stream), none(&stream));
    }
}

pub mod returns_an_iterator_after_launching {
    use crate::support::*;

    #[cfg_attr(feature = "timed", gpu_timed)]
    fn iterate(stream: &CudaStream) -> Result<impl Iterator<Item = u32>, Refused> {
        stream.launch_builder("iterate").launch(1)?;
        Ok((0..3).map(|n| n * 2))
    }

    pub fn run() {
        log!("{:?}", iterate(&CudaStream::new(1)).map(Iterator::collect::<Vec<_>>));
    }
}
