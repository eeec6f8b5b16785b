//! Short forms of kernel names, whose template arguments may be hundreds of characters long.

use unicode_width::UnicodeWidthStr;

use crate::shorten::told_apart;

/// Replaces the parts of a name that are left out.
const GAP: &str = "…";

/// Returns a short form for each name, at most `columns` wide unless that would make two names
/// equal. It keeps the function's name and the tokens in which names of the same function differ,
/// however deep inside of the template arguments they are.
pub fn shortened(names: &[&str], columns: usize) -> Vec<String> {
    told_apart(names, &|names| excerpts(names, columns), &|name, _| name.to_owned())
}

/// Returns the short form of a single name.
pub fn short(name: &str, columns: usize) -> String {
    shortened(&[name], columns).concat()
}

/// Returns the names, with excerpts of those that are too long.
fn excerpts(names: &[&str], columns: usize) -> Vec<String> {
    let mut texts: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let long = (0..names.len()).filter(|&at| names[at].width() > columns);
    let mut long: Vec<(usize, Name)> = long.map(|at| (at, Name::of(names[at]))).collect();
    long.sort_by(|(_, a), (_, b)| (a.function(), &a.tokens).cmp(&(b.function(), &b.tokens)));
    for same in long.chunk_by(|(_, a), (_, b)| a.function() == b.function()) {
        // Find the first token that differs from each other name. In sorted order, the names that
        // share the most tokens with this one are next to it.
        let shared: Vec<usize> = same.windows(2).map(Name::shared_tokens).collect();
        for (place, (at, name)) in same.iter().enumerate() {
            let (before, after) = shared.split_at(place);
            let mut differs = vec![false; name.tokens.len()];
            let mut note = |least: usize, shared: &usize| {
                let least = least.min(*shared);
                set(&mut differs, least, true);
                least
            };
            before.iter().rev().fold(usize::MAX, &mut note);
            after.iter().fold(usize::MAX, &mut note);
            texts[*at] = name.excerpt(&differs, columns);
        }
    }
    texts
}

/// A name, split into words and punctuation.
struct Name<'a> {
    /// Without the return type.
    tokens: Vec<&'a str>,
    /// The first and the last token of the function's own name, which is before the first `<`.
    function: (usize, usize),
    /// The number of tokens before the parameters.
    without_parameters: usize,
}

impl<'a> Name<'a> {
    fn of(full: &'a str) -> Name<'a> {
        let mut tokens = tokens(full);
        // A template's name begins with its return type, which may be as long as the rest.
        let end = parameters(&tokens).unwrap_or(tokens.len());
        let after_type = outside_brackets(&tokens[..end]).filter(|(_, token)| *token == " ").last();
        tokens.drain(..after_type.map_or(0, |(space, _)| space + 1));

        let without_parameters = parameters(&tokens).unwrap_or(tokens.len());
        let path = || outside_brackets(&tokens[..without_parameters]);
        let segment_before = |end: usize| {
            let colons = path().filter(|(at, token)| *at < end && *token == ":");
            colons.last().map_or(0, |(colon, _)| colon + 1)
        };
        let mut first = segment_before(without_parameters);
        let arguments = path().find(|(at, token)| *at > first && *token == "<");
        let arguments = arguments.map_or(without_parameters, |(at, _)| at);
        if let Some(["kernel" | "Kernel"]) = tokens.get(first..arguments) {
            // Many libraries have a kernel with this name. Only its namespace tells what it does.
            let before = segment_before(first.saturating_sub(2));
            let is_namespace =
                !tokens[before..first].iter().any(|token| *token == ">" || *token == ")");
            first = if is_namespace { before } else { first };
        }
        Name { function: (first, arguments), without_parameters, tokens }
    }

    /// Returns the function's own name if template arguments follow it. Only such a name is kept
    /// whole.
    fn function(&self) -> Option<&[&'a str]> {
        let (first, end) = self.function;
        self.tokens.get(first..end).filter(|_| end < self.without_parameters)
    }

    fn shared_tokens(pair: &[(usize, Name)]) -> usize {
        let [(_, one), (_, other)] = pair else { return 0 };
        one.tokens.iter().zip(&other.tokens).take_while(|(one, other)| one == other).count()
    }

    /// Returns the function's name and the tokens that differ, with as much around them as fits.
    fn excerpt(&self, differs: &[bool], columns: usize) -> String {
        let (first, end) = self.function;
        let has_arguments = end < self.without_parameters;
        let mut around: Vec<usize> = (0..differs.len()).filter(|&at| differs[at]).collect();
        let mut shown = differs.to_vec();
        if has_arguments {
            (first..=end).for_each(|at| set(&mut shown, at, true));
        }
        if around.is_empty() {
            around.push(if has_arguments { end } else { first });
        }
        // Show one more token before and after each of them, as long as any fits.
        let mut is_growing = true;
        while is_growing {
            is_growing = false;
            for &at in &around {
                let after = (at..self.without_parameters).find(|&at| shown.get(at) == Some(&false));
                let before = (first..at).rev().find(|&at| shown.get(at) == Some(&false));
                for next in [before, after].into_iter().flatten() {
                    set(&mut shown, next, true);
                    let fits = self.text(&shown).width() <= columns;
                    set(&mut shown, next, fits);
                    is_growing |= fits;
                }
            }
        }
        self.text(&shown)
    }

    /// Returns the tokens that are shown, with marks between them where others are left out. The
    /// path of the function and its parameters are left out without a mark.
    fn text(&self, shown: &[bool]) -> String {
        let mut text = String::new();
        let mut is_after_gap = false;
        for (at, (token, shown)) in self.tokens.iter().zip(shown).enumerate() {
            if *shown {
                text.push_str(token);
                is_after_gap = false;
            } else if !is_after_gap && (self.function.0..self.without_parameters).contains(&at) {
                text.push_str(GAP);
                is_after_gap = true;
            }
        }
        text
    }
}

fn set(shown: &mut [bool], at: usize, to: bool) {
    if let Some(shown) = shown.get_mut(at) {
        *shown = to;
    }
}

/// Splits a text into runs of letters and digits, and single other characters.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if first.is_alphanumeric() {
            rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(end);
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// Returns the tokens that are outside of any brackets, and opening brackets at this level, with their indices.
fn outside_brackets<'a>(tokens: &'a [&str]) -> impl Iterator<Item = (usize, &'a str)> {
    let mut depth = 0_usize;
    let is_outside = move |token: &str| match token {
        "<" | "(" | "[" | "{" => {
            depth += 1;
            depth == 1
        }
        ">" | ")" | "]" | "}" => {
            depth = depth.saturating_sub(1);
            false
        }
        _ => depth == 0,
    };
    let tokens = tokens.iter().copied().enumerate();
    tokens
        .scan(is_outside, |is_outside, (at, token)| Some((is_outside(token), at, token)))
        .filter_map(|(is_outside, at, token)| is_outside.then_some((at, token)))
}

/// Returns the index of the parenthesis that begins the parameters at the end of a name.
fn parameters(tokens: &[&str]) -> Option<usize> {
    if tokens.last() != Some(&")") {
        return None;
    }
    let mut depth = 0;
    let begins = |token: &&str| {
        match *token {
            ")" => depth += 1,
            "(" => depth -= 1,
            _ => {}
        }
        depth == 0
    };
    tokens.iter().rposition(begins).filter(|at| *at > 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::fixtures::GEMMS;

    #[test]
    fn names_that_fit_are_whole() {
        let name = "void saxpy<float>(float const*, int)";
        assert_eq!(shortened(&[name], 40), [name]);
        assert_eq!(
            shortened(&["[copy HtoD]", "void saxpy<float>(float const*)"], 14)[1],
            "saxpy<float>"
        );
    }

    #[test]
    fn difference_deep_inside_template_arguments_is_shown() {
        let short = shortened(&GEMMS, 60);
        assert_eq!(
            short,
            [
                "device_kernel<…<cute::C<128>, cute::C<256>, cute::C<64> >, …",
                "device_kernel<…<cute::C<128>, cute::C<128>, cute::C<64> >, …",
            ]
        );
        for columns in [24, 30, 40, 80, 120] {
            let short = shortened(&GEMMS, columns);
            assert!(short.iter().all(|name| name.width() <= columns), "{short:?}");
            assert!(short[0].starts_with("device_kernel<") && short[0] != short[1], "{short:?}");
        }
    }

    #[test]
    fn generated_names_show_their_differences() {
        let name = |tile: &str, stages: &str| {
            format!(
                "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_{tile}_{stages}_nn_align8\
                 >(cutlass_80_tensorop_f16_s16816gemm_relu_f16_{tile}_{stages}_nn_align8::Params)"
            )
        };
        let names = [("256x128", "32x3"), ("128x128", "32x5"), ("128x128", "64x4")]
            .map(|(tile, stages)| name(tile, stages));
        let short = shortened(&names.each_ref().map(String::as_str), 44);
        let expected = [
            "Kernel2<…_relu_f16_256x128_32x3_nn_align8>",
            "Kernel2<…_relu_f16_128x128_32x5_nn_align8>",
            "Kernel2<…_relu_f16_128x128_64x4_nn_align8>",
        ];
        assert_eq!(short, expected);
    }

    #[test]
    fn names_without_template_arguments_show_their_differences() {
        let name =
            |what: &str| format!("triton_red_fused__to_copy_add_mean_{what}_pow_rsqrt_sum_view_12");
        let names = ["mul", "sub"].map(name);
        let short = shortened(&names.each_ref().map(String::as_str), 30);
        assert_eq!(short, ["…copy_add_mean_mul_pow_rsqrt_…", "…copy_add_mean_sub_pow_rsqrt_…"]);
        assert_eq!(shortened(&[&names[0]], 24), ["triton_red_fused__to_…"]);
    }

    #[test]
    fn return_types_are_left_out() {
        let name = |threads: u32| {
            format!(
                "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float, float, float, \
                 false, true, true, false, {threads}, false, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<\
                 float const>, float> >(cublasGemvParamsEx<int, float>)"
            )
        };
        let short = shortened(&[&name(7), &name(9)], 44);
        assert_eq!(
            short,
            [
                "gemvx::kernel<…, true, false, 7, false, …",
                "gemvx::kernel<…, true, false, 9, false, …"
            ]
        );
        assert_eq!(
            shortened(&["unsigned int ns::fill<unsigned int>(unsigned int*)"], 20),
            ["fill<unsigned int>"]
        );
    }

    #[test]
    fn names_inside_templates_are_short() {
        let name = "void at::native::Reduce<at::native::Op<float, float, float, 4> >::run<512, 1, long>(long)";
        assert_eq!(shortened(&[name], 24), ["run<512, 1, long>"]);
        let name = "void at::native::(anonymous namespace)::cat_copy<at::native::Opaque<4u>, unsigned int, 3>(int)";
        assert_eq!(shortened(&[name], 24), ["cat_copy<at::native::…"]);
        let name =
            "<program::some::Kernels<f32, 128> as program::some::Launch>::forward_and_backward";
        assert_eq!(shortened(&[name], 24), ["forward_and_backward"]);
    }

    #[test]
    fn hundreds_of_variants_stay_distinct() {
        let names: Vec<String> = (0..300)
            .map(|i| {
                let [a, b, c] = [i % 7, i / 7 % 7, i / 49].map(|digit| 1 << digit);
                format!(
                    "void ns::outer::kernel<ns::Traits<float, ns::Shape<{a}, ns::Long<{b}, int> >, \
                     ns::Layout<ns::Row, {c}> >, ns::Epilogue<void, void> >(ns::Traits<float>::Arguments)"
                )
            })
            .collect();
        let mut short = shortened(&names.iter().map(String::as_str).collect::<Vec<_>>(), 40);
        short.sort();
        short.dedup();
        assert_eq!(short.len(), 300);
        assert!(short.iter().all(|name| name.starts_with("outer::kernel<")), "{short:?}");
    }

    #[test]
    fn namespaces_and_parameters_distinguish_names() {
        let long = "std::array<char*, 3ul>, at::native::Memory<16, 8>, at::native::Offset<3>";
        let names = [
            format!("void a::apply<{long}>(int)"),
            format!("void b::apply<{long}>(int)"),
            format!("void b::apply<{long}>(long)"),
        ];
        let short = shortened(&names.each_ref().map(String::as_str), 40);
        let distinct: BTreeSet<&String> = short.iter().collect();
        assert_eq!(distinct.len(), 3, "{short:?}");
        assert!(short.iter().all(|name| name.width() <= 48), "{short:?}");
    }

    #[test]
    fn any_text_has_a_short_form() {
        for name in
            ["", "(", ")", "<", "f(", "void ", ")(", "名前<名前名前>(名)", "a::<b>::c<d>()e"]
        {
            for columns in 0..9 {
                let short = shortened(&[name, "other"], columns);
                assert!(short[0] == name || short[0].width() <= columns.max(9), "{short:?}");
            }
        }
    }
}
