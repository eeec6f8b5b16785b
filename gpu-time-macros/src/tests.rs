//! What functions become, read as text. The snapshots are in `snapshots/`.

use std::str::FromStr;

use proc_macro2::TokenStream;

use crate::rewrite;

fn tokens(text: &str) -> TokenStream {
    TokenStream::from_str(text).unwrap()
}

/// The rewritten item, formatted, without the declaration of the site unless it is of interest.
fn expanded(args: &str, item: &str) -> String {
    let output = rewrite(tokens(args), tokens(item));
    prettyplease::unparse(&syn::parse2(output).unwrap())
}

fn without_site(text: &str) -> String {
    let mut out = String::new();
    let mut in_site = false;
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        if line.trim() == "fn __gpu_time_marker() {}" {
            in_site = true;
            out.push_str(&format!("{:depth$}…\n", ""));
        }
        if !in_site {
            out.push_str(line);
            out.push('\n');
        }
        if line.trim() == "&__GPU_TIME_SITE" {
            in_site = false;
        }
    }
    out
}

macro_rules! snapshot {
    ($name:ident, $args:expr, $item:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(without_site(&expanded($args, $item)));
        }
    };
}

#[test]
fn the_site() {
    insta::assert_snapshot!(expanded(
        "name = \"gemm\", warmup = WARMUP * 2, cold = \"dirty\", sleep = \"50us\"",
        "fn f(stream: &CudaStream) { stream.launch_builder(k).launch(cfg); }",
    ));
}

snapshot!(
    launches_with_every_way_to_stand,
    "",
    "unsafe fn f(stream: &Arc<CudaStream>, cfg: Cfg) -> Result<(), E> {
        let mut b = stream.launch_builder(&self.k);
        #[cfg(feature = \"x\")]
        b.launch(cfg);
        unsafe { b.launch(cfg) }?;
        for _ in 0..3 { if let Err(e) = b.launch(cfg) { return Err(e); } }
        outer.launch(inner.launch(1));
        x.launch(1).unwrap().launch(2).unwrap();
        cuLaunchKernel(k);
        match b.launch(cfg) { Ok(_) => Ok(()), Err(e) => Err(e) }
    }"
);

snapshot!(
    macro_launches,
    "stream = self.stream",
    "fn f(&self) -> u32 {
        launch_kernel!(a);
        #[cfg(x)]
        launch_kernel! { b }
        let x = launch_kernel!(c)?;
        launch_kernel!(d)
    }"
);

snapshot!(
    hidden_launches_mean_body_scope_and_verbatim_tokens,
    "",
    "fn f(stream: CUstream) -> u32 {
        #![allow(unused)]
        use a::b;
        const N: u32 = 3;
        k.launch(1);
        let go = || k.launch(2);
        go()
    }"
);

snapshot!(
    owned_streams_are_kept_weakly,
    "stream = device.as_cuda()?.stream(|x| x?)",
    "fn f(device: Device) { drop(device); }"
);

snapshot!(
    async_functions_mark_their_awaits,
    "",
    "async fn f(stream: Arc<CudaStream>) -> Result<u32, E> {
        k.launch(1).await?;
        let all = vec![a().await, b().await];
        tokio::select! { x = a() => {} }
        let later = async { c().await };
        later.await
    }"
);

snapshot!(
    boxed_futures_are_bracketed_inside,
    "scope = \"body\"",
    "fn f<'life0, 'async_trait>(&'life0 self, x: u32) -> Pin<Box<dyn Future<Output = u32> + 'async_trait>> {
        Box::pin(async move {
            if let Some(__ret) = None::<u32> { return __ret; }
            let __self = self;
            let x = x;
            let __ret: u32 = { __self.stream.launch_builder(x).launch(1); x };
            __ret
        })
    }"
);

snapshot!(
    configured_parameters,
    "",
    "fn f(#[cfg(gpu)] stream: &CudaStream, #[cfg(not(gpu))] stream: Option<&CudaStream>) {}"
);

snapshot!(
    the_host_clock_and_a_crate_path,
    "clock = \"host\", crate = crate::reexports::timing",
    "pub(crate) async unsafe extern \"C\" fn f<T: Into<u8>>((a, b): (u8, T)) where T: Copy {}"
);

snapshot!(
    work_is_evaluated_apart_from_the_stream,
    "stream = device.stream()?, bytes = 4 * self.x.len(), flops = self.flops(n)?",
    "fn f(&self, n: usize) -> u8 { self.run(); 3 }"
);

snapshot!(work_on_the_host, "clock = \"host\", flops = n", "fn f(n: usize) {}");

#[test]
fn the_host_clock_times_the_body_whatever_it_launches() {
    let output = rewrite(tokens("clock = \"host\""), tokens("fn f() { k.launch(1) }"));
    let text = output.to_string();
    assert!(text.ends_with("k . launch (1) }"), "{text}");
    assert!(text.contains("ScopeKind :: Body") && text.contains("Clock :: Host"), "{text}");
}

#[test]
fn barriers_go_around_the_body_whatever_it_launches() {
    let output = rewrite(
        tokens("clock = \"sync\", cold"),
        tokens("fn f(stream: &CudaStream) { k.launch(1) }"),
    );
    let text = output.to_string();
    assert!(text.ends_with("k . launch (1) }"), "{text}");
    assert!(text.contains("ScopeKind :: Body") && text.contains("Clock :: Sync"), "{text}");
}

#[test]
fn a_name_in_the_body_stands_for_what_it_was_bound_to() {
    let inferred = |expr: &str| format!("target!(&{expr},lent,");
    let written = |expr: &str| format!("write`stream={expr}`if");
    let made = "thisstreamismadeinthebody".to_owned();
    let known = "thisstreamisknownonlyinthebody".to_owned();
    for (body, outcome) in [
        ("net.s.launch_builder(k);", inferred("net.s")),
        ("let s = &net.s; s.launch_builder(k);", inferred("net.s")),
        ("let s: Arc<_> = Arc::clone(&net.s); s.launch_builder(k);", inferred("net.s")),
        ("let net = &net.inner; (&net.s).clone().launch_builder(k);", inferred("net.inner.s")),
        // What a name is bound to later, or in a block that has ended, is not meant.
        ("net.launch_builder(k); let net = net.fork()?;", inferred("net")),
        ("{ let net = net.fork()?; } net.launch_builder(k);", inferred("net")),
        ("let s = net.s; let net = x?; s.launch_builder(k);", inferred("net.s")),
        ("let net = net.fork()?; net.launch_builder(k);", made.clone()),
        ("let s = net.c.new_stream().unwrap(); let s = &s; s.launch_builder(k);", made),
        ("let net = net.stream()?; net.launch_builder(k);", written("net.stream()?")),
        ("let c = net.c; c.of(n, &mut a).launch_builder(k);", written("net.c.of(n,&muta)")),
        ("let n = 1; net.of(n).launch_builder(k);", known.clone()),
        ("let s = net.stream().await; s.launch_builder(k);", known.clone()),
        ("let s = pick(net.fork()?); s.launch_builder(k);", known.clone()),
        ("#[cfg(x)] let net = net.other; net.launch_builder(k);", known.clone()),
        ("let s = { net.s }; s.launch_builder(k);", known.clone()),
        ("let mut s = &net.s; if x { s = &net.t; } s.launch_builder(k);", known.clone()),
        (
            "let (a, b) = (&net.s, &net.t); let a = &net.s; let b = &net.t; \
             a.launch_builder(k); b.launch_builder(k);",
            "launcheson`net.s`andon`net.t`:write`stream=net.s`,".to_owned(),
        ),
        ("if let Some(net) = net { net.launch_builder(k); }", known),
    ] {
        let output = rewrite(tokens(""), tokens(&format!("async fn f(net: &Net) {{ {body} }}")));
        let text = output.to_string().replace(' ', "");
        assert!(text.contains(&outcome), "{body}\n{text}");
    }
}

#[test]
fn launches_on_another_stream_than_the_timed_one_are_remarked_upon() {
    let remark = "what is launched on another stream than the timed one is not seen";
    for (keys, receiver, is_elsewhere) in [
        ("stream = a", "b", true),
        ("stream = &a, cold", "(&b)", true),
        ("stream = a", "a", false),
        ("stream = a", "self.s", true),
        ("stream = self.s", "a", true),
        ("stream = self.s", "self.other", true),
        ("stream = &self.s", "self.s", false),
        // One may be what the other dereferences to.
        ("stream = self.s", "self.s.inner", false),
        ("stream = self.s.inner", "self.s", false),
        // Who knows which stream these are.
        ("stream = a.clone()", "b", false),
        ("stream = a", "device", false),
        ("stream = a", "b.other()", false),
        // It may fork from the one and join it again.
        ("stream = a, scope = \"body\"", "b", false),
    ] {
        let body = format!("{receiver}.launch_builder(k).launch(c)");
        let params = "&self, a: &Arc<CudaStream>, b: &Arc<CudaStream>, device: &Device";
        let output = rewrite(tokens(keys), tokens(&format!("fn f({params}) {{ {body} }}")));
        let text = output.to_string();
        assert!(!text.contains("compile_error"), "{text}");
        assert_eq!(text.contains(remark), is_elsewhere, "{keys}, {body}");
    }
    for (body, is_elsewhere) in [
        ("let stream = stream.fork()?; stream.launch_builder(k).launch(c);", true),
        ("let s = net.context.new_stream().unwrap(); s.launch_builder(k).launch(c);", true),
        ("net.stream.launch_builder(k).launch(c);", true),
        ("let s = &net.stream; s.launch_builder(k).launch(c);", true),
        ("stream.fork()?.launch_builder(k).launch(c);", true),
        ("let s = stream.clone(); s.launch_builder(k).launch(c);", false),
        ("let s = Arc::clone(&stream); let s = &s; s.launch_builder(k).launch(c);", false),
        ("let s = if x { stream.fork()? } else { stream }; s.launch_builder(k).launch(c);", false),
        ("let Some(s) = stream else { return }; s.launch_builder(k).launch(c);", false),
        ("for s in [stream] { s.launch_builder(k).launch(c); }", false),
        ("let s = stream.unwrap(); s.launch_builder(k).launch(c);", false),
        ("stream.launch_builder(k).launch(c); let stream = stream.fork()?;", false),
        ("{ let stream = stream.fork()?; } stream.launch_builder(k).launch(c);", false),
        // What goes to the one stream is seen.
        ("net.s.launch_builder(k).launch(c); stream.launch_builder(k).launch(c);", false),
        ("net.launch_builder(k).launch(c);", false),
        ("stream.memset(); k.launch(c);", false),
    ] {
        let params = "stream: &Arc<CudaStream>, net: &Net";
        let output = rewrite(tokens(""), tokens(&format!("fn f({params}) {{ {body} }}")));
        let text = output.to_string();
        assert!(!text.contains("compile_error"), "{text}");
        assert_eq!(text.contains(remark), is_elsewhere, "{body}");
    }
}

#[test]
fn a_body_that_is_no_known_rust_stays_as_it_is() {
    let output =
        rewrite(tokens("cold"), tokens("fn f(stream: &CudaStream) { new syntax; k.launch(1) }"));
    let text = output.to_string();
    assert!(text.ends_with("new syntax ; k . launch (1) }"), "{text}");
    assert!(text.contains("options : \"cold, the body is no Rust that the macro knows"), "{text}");
    assert!(text.contains("ScopeKind :: Body"), "{text}");
}

snapshot!(a_mistake_leaves_the_function_alone, "warmpu = 10, cold = 3", "const fn f() -> u8 { 3 }");
