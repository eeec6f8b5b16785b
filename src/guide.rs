//! The pages from the repository's `docs/` folder.

// In Markdown, the first definition of a link wins. On each page here, `links.md` comes first and
// overrides the definitions at the end of the page, which point to files in the repository.

/// Defines a module that only contains the text of a page.
macro_rules! page {
    ($name:ident: $path:literal) => {
        #[doc = concat!(include_str!("links.md"), include_str!($path))]
        pub mod $name {}
    };
}

page!(comparing: "../docs/comparing.md");
page!(how_it_measures: "../docs/how-it-measures.md");
page!(kernels: "../docs/kernels.md");
page!(keys_and_variables: "../docs/keys-and-variables.md");
page!(meaning_of_numbers: "../docs/meaning-of-numbers.md");
page!(production: "../docs/production.md");
page!(recipes: "../docs/recipes.md");
page!(spans: "../docs/spans.md");
page!(troubleshooting: "../docs/troubleshooting.md");
page!(without_a_gpu: "../docs/without-a-gpu.md");
