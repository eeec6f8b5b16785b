//! Expansions of functions as text. The snapshots are in `snapshots/`.

use std::str::FromStr;

use proc_macro2::TokenStream;

use crate::enabled::rewrite::rewrite;

fn tokens(text: &str) -> TokenStream {
    TokenStream::from_str(text).unwrap()
}

/// Returns the rewritten item, formatted.
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
fn site_declaration() {
    insta::assert_snapshot!(expanded(
        "name = \"gemm\", warmup = WARMUP * 2, cold = \"dirty\", sleep = \"50us\"",
        "fn f(stream: &CudaStream) { stream.launch_builder(k).launch(cfg); }",
    ));
}

snapshot!(
    launches_in_every_position,
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
    launch_macros,
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
    launch_macros_as_places,
    "stream = self.stream, scope = \"launches\"",
    "fn f(&mut self) {
        launch!(self.b).reverse();
        *&mut launch!(self.n) += launch!(self.m);
        let ref mut n = launch!(self.n);
        let mut x: u8 = launch!(&self.n);
        let Some(y) = launch!(self.o) else { return };
        launch!(y).unwrap();
        _ = launch!(self.b);
        (x, launch!(self.n)) = launch!(self.pair);
    }"
);

snapshot!(
    hidden_launch_implies_body_scope,
    "",
    "fn f(stream: &CudaStream) -> u32 {
        #![allow(unused)]
        use a::b;
        const N: u32 = 3;
        k.launch(1);
        let go = || k.launch(2);
        go()
    }"
);

snapshot!(
    owned_stream,
    "stream = device.as_cuda()?.stream(|x| x?)",
    "fn f(device: Device) { drop(device); }"
);

snapshot!(
    async_function,
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
    boxed_future,
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
    parameters_with_cfg,
    "",
    "fn f(#[cfg(gpu)] stream: &CudaStream, #[cfg(not(gpu))] stream: Option<&CudaStream>) {}"
);

snapshot!(
    host_clock_with_crate_path,
    "clock = \"host\", crate = crate::reexports::timing",
    "pub(crate) async unsafe extern \"C\" fn f<T: Into<u8>>((a, b): (u8, T)) where T: Copy {}"
);

snapshot!(
    stream_with_work,
    "stream = device.stream()?, bytes = 4 * self.x.len(), flops = self.flops(n)?",
    "fn f(&self, n: usize) -> u8 { self.run(); 3 }"
);

snapshot!(kernels_with_work, "clock = \"kernels\", bytes = n", "fn f(n: usize) { k.launch(n) }");

snapshot!(host_clock_with_work, "clock = \"host\", flops = n", "fn f(n: usize) {}");

#[test]
fn host_clock_implies_body_scope() {
    let output = rewrite(tokens("clock = \"host\""), tokens("fn f() { k.launch(1) }"));
    let text = output.to_string();
    assert!(text.ends_with("k . launch (1) }"), "{text}");
    assert!(text.contains("ScopeKind :: Body") && text.contains("Clock :: Host"), "{text}");
}

#[test]
fn sync_clock_implies_body_scope() {
    let output = rewrite(
        tokens("clock = \"sync\", cold"),
        tokens("fn f(stream: &CudaStream) { k.launch(1) }"),
    );
    let text = output.to_string();
    assert!(text.ends_with("k . launch (1) }"), "{text}");
    assert!(text.contains("ScopeKind :: Body") && text.contains("Clock :: Sync"), "{text}");
}

#[test]
fn stream_is_inferred_through_bindings() {
    let inferred = |expr: &str| format!("source!(&{expr},lent,__gpu_time_query)");
    let written = |expr: &str| format!("write`stream={expr}`if");
    let made = "thisstreamiscreatedinthebody".to_owned();
    let known = "thisstreamisknownonlyinthebody".to_owned();
    for (body, outcome) in [
        ("net.s.launch_builder(k);", inferred("net.s")),
        ("let s = &net.s; s.launch_builder(k);", inferred("net.s")),
        ("let s: Arc<_> = Arc::clone(&net.s); s.launch_builder(k);", inferred("net.s")),
        ("let net = &net.inner; (&net.s).clone().launch_builder(k);", inferred("net.inner.s")),
        // Later bindings of the name, and those in blocks that have ended, do not count.
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
            "launcheson`net.s`and`net.t`:write`stream=net.s`,".to_owned(),
        ),
        ("if let Some(net) = net { net.launch_builder(k); }", known),
    ] {
        let function = tokens(&format!("async fn f(net: &Net) {{ {body} }}"));
        // With `cold` a function needs a stream, so the error says why none is inferred.
        let text = rewrite(tokens("cold"), function.clone()).to_string().replace(' ', "");
        assert!(text.contains(&outcome), "{body}\n{text}");
        let text = rewrite(tokens(""), function).to_string();
        let is_inferred = outcome.starts_with("source");
        assert_eq!(text.contains("takes_default : true"), !is_inferred, "{body}\n{text}");
    }
}

#[test]
fn function_without_stream_gets_clock_of_kernels() {
    for (keys, function) in [
        ("", "fn f(x: &Tensor) { x.matmul(); }"),
        ("", "fn f(stream: CUstream) { unsafe { cuLaunchKernel(stream) } }"),
        ("", "fn f(&self) { self.a.launch_builder(k).launch(c); self.b.launch_builder(k); }"),
        ("", "fn f(&self) { let go = || k.launch(1); go(); k.launch(2); }"),
        ("", "async fn f(x: &Tensor) { x.get().await; }"),
        ("warmup = 2, scope = \"body\", bytes = x.len()", "fn f(x: &Tensor) { g() }"),
        ("clock = \"kernels\"", "fn f(stream: &CudaStream) { k.launch(1); }"),
        ("clock = \"kernels\"", "fn f(one: &CudaStream, two: &CudaStream) { k.launch(1); }"),
    ] {
        let text = rewrite(tokens(keys), tokens(function)).to_string();
        assert!(!text.contains("compile_error"), "{keys} {function}\n{text}");
        let takes_default = format!("takes_default : {}", !keys.starts_with("clock"));
        for part in [&takes_default, "Clock :: Kernels", "ScopeKind :: Body", "remarks : & []"] {
            assert!(text.contains(part), "{keys} {function}\n{text}");
        }
        assert!(!text.contains("stop"), "the launches are not marked: {text}");
    }
}

#[test]
fn key_that_needs_a_stream_is_named() {
    for keys in [
        "cold",
        "sleep = \"50us\"",
        "graph",
        "launch = \"gemm\"",
        "scope = \"launches\"",
        "clock = \"events\"",
        "clock = \"sync\"",
    ] {
        let text = rewrite(tokens(keys), tokens("fn f(x: &Tensor) { gemm(x).launch(); }"));
        let name = keys.trim_end_matches(" = \"50us\"").trim_end_matches(" = \"gemm\"");
        let message = format!("no stream found, which `{name}` needs: write `stream = EXPR`");
        let message = proc_macro2::Literal::string(&message).to_string();
        assert!(text.to_string().contains(&message), "{keys}\n{text}");
    }
}

#[test]
fn launches_on_another_stream_are_remarked() {
    let remark = "Remark :: OtherStream";
    for (keys, receiver, is_elsewhere) in [
        ("stream = a", "b", true),
        ("stream = &a, cold", "(&b)", true),
        ("stream = a", "a", false),
        ("stream = a", "self.s", true),
        ("stream = self.s", "a", true),
        ("stream = self.s", "self.other", true),
        ("stream = &self.s", "self.s", false),
        // One stream may dereference to the other.
        ("stream = self.s", "self.s.inner", false),
        ("stream = self.s.inner", "self.s", false),
        // The names do not tell which stream these are.
        ("stream = a.clone()", "b", false),
        ("stream = a", "device", false),
        ("stream = a", "b.other()", false),
        // The body may fork from the stream and join it again.
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
        // A launch on the timed stream is measured.
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
fn unparsed_body_is_kept_verbatim() {
    let output =
        rewrite(tokens("cold"), tokens("fn f(stream: &CudaStream) { new syntax; k.launch(1) }"));
    let text = output.to_string();
    assert!(text.ends_with("new syntax ; k . launch (1) }"), "{text}");
    assert!(text.contains("Remark :: UnparsedBody"), "{text}");
    assert!(text.contains("ScopeKind :: Body"), "{text}");
}

snapshot!(errors_leave_the_function_unchanged, "warmpu = 10, cold = 3", "const fn f() -> u8 { 3 }");

snapshot!(
    keys_of_an_impl,
    "cold, warmup = 3",
    "impl<const N: usize> Net<N> {
        #![allow(unused)]
        /// Documented.
        #[inline]
        pub fn forward(&self) {}
        #[gpu_timed(skip)]
        fn new() -> Self { Net }
        const fn layers() -> usize { 3 }
        #[gpu_timed(warmup = 1)]
        const fn annotated() {}
        #[unsafe(naked)]
        extern \"C\" fn naked() {}
        const LEN: usize = { 3 };
        extern \"C\" fn callback() {}
        generated! {}
    }"
);

snapshot!(
    keys_of_a_trait,
    "crate = crate::reexports::timing",
    "pub unsafe trait Layer: Sized where Self: Copy { type In; fn forward(&self); fn twice(&self) {} }"
);

snapshot!(
    keys_of_a_mod,
    "",
    "pub(crate) mod layers {
        //! Layers.
        use super::*;
        struct Net;
        impl Net {}
        trait Layer {}
        mod inner { fn f() {} }
        macro_rules! generated { () => {} }
        extern \"C\" { fn c(); }
        fn forward() {}
        #[cfg(test)]
        mod tests { fn helper() {} }
        #[tokio::test]
        async fn test() {}
    }"
);

#[test]
fn unparsed_body_in_an_impl_is_kept_verbatim() {
    let text = rewrite(tokens("cold"), tokens("impl Net { pub fn f() { new syntax; } }"));
    let text = text.to_string();
    assert!(text.ends_with("pub fn f () { new syntax ; } }"), "{text}");
    assert!(text.contains("__inherited (cold)"), "{text}");
}

/// Returns the keys that a function ends up with, as the report shows them.
fn effective(own: &str, inherited: &str, function: &str) -> String {
    let item = format!("#[::gpu_time::gpu_timed(__inherited({inherited}))] {function}");
    let text = rewrite(tokens(own), tokens(&item)).to_string();
    assert!(!text.contains("__inherited"), "{text}");
    options(&text)
}

/// Like [`effective`], for a function without an attribute of its own.
fn effective_alone(inherited: &str, function: &str) -> String {
    options(&rewrite(tokens(&format!("__inherited({inherited})")), tokens(function)).to_string())
}

fn options(text: &str) -> String {
    if let Some((_, error)) = text.split_once("compile_error") {
        return error.to_owned();
    }
    let Some((_, options)) = text.split_once("options : \"") else { return "untimed".to_owned() };
    options.split_once("\" , remarks").unwrap().0.replace(" ,", ",").replace('\\', "")
}

#[test]
fn own_keys_win_over_inherited_ones() {
    let on_stream = "fn f(stream: &CudaStream) { k.launch(1) }";
    for (own, inherited, expected) in [
        ("", "cold, warmup = 3", "cold, warmup = 3"),
        ("warmup = 1", "cold, warmup = 3", "cold, warmup = 1"),
        ("cold = \"dirty\",", "cold, warmup = 3", "warmup = 3, cold = \"dirty\","),
        ("skip", "cold, warmup = 3", "untimed"),
        // Keys that contradict each other.
        ("clock = \"host\"", "stream = s, cold, warmup = 3", "warmup = 3, clock = \"host\""),
        ("sleep, cold", "clock = \"kernels\", warmup = 3", "warmup = 3, sleep, cold"),
        ("every = 2", "sample = 0.5", "every = 2"),
        ("helpers = true", "helpers = false, warmup = 3", "warmup = 3, helpers = true"),
        ("clock = \"host\"", "helpers = false", "clock = \"host\""),
        ("scope = \"body\"", "graph, launch = \"gemm\"", "scope = \"body\""),
        ("graph", "scope = \"body\"", "graph"),
        // Names of other functions' launches.
        ("", "launch = \"gemm\"", "launch = \"gemm\""),
    ] {
        assert_eq!(effective(own, inherited, on_stream), expected, "{own} in {inherited}");
    }
    assert!(effective("skip, cold", "warmup = 3", on_stream).contains("`skip` conflicts"));
}

#[test]
fn inherited_keys_apply_where_they_can() {
    for (inherited, function, expected) in [
        ("cold, sleep, graph, warmup = 3", "fn f(x: &Tensor) { x.matmul() }", "warmup = 3"),
        ("stream = self.s, cold", "fn new() -> Net { Net }", ""),
        ("stream = self.s, cold", "fn f(&self) { g() }", "stream = self . s, cold"),
        ("stream = self.s, graph", "fn f(&self) { g() }", "stream = self . s"),
        ("stream = s, scope = \"launches\"", "fn f() { g() }", "stream = s"),
        ("stream = s, sleep, clock = \"sync\"", "async fn f() {}", "stream = s"),
        ("clock = \"events\"", "fn f() {}", ""),
        ("warmup = 1", "fn f(&self) -> impl Iterator<Item = u8> { g() }", "untimed"),
    ] {
        assert_eq!(effective_alone(inherited, function), expected, "{inherited} on {function}");
    }
    // In these cases, the user must choose a stream.
    for (inherited, function) in [
        ("cold", "fn f(stream: CUstream) {}"),
        ("cold", "fn f(&self) { let s = self.s.fork(); s.launch_builder(k); }"),
        ("", "fn f(a: &CudaStream, b: &CudaStream) {}"),
    ] {
        assert!(
            effective_alone(inherited, function).contains("stream"),
            "{inherited} on {function}"
        );
    }
    // A function's own attribute that cannot apply is an error.
    let own = effective("warmup = 2", "cold", "fn f(&self) -> impl Iterator<Item = u8> { g() }");
    assert!(own.contains("returns before "), "{own}");
    let own = effective("sleep", "cold", "fn f(x: &Tensor) {}");
    assert!(own.contains("which `sleep` needs"), "{own}");
}
