//! The pages of the repository's folder `docs/`.

// In Markdown the first definition of a link wins. `links.md` comes first on each page here, and
// replaces the definitions at the page's end, which lead to files of the repository.

/// A module with the text of a page and nothing else.
macro_rules! page {
    ($name:ident: $path:literal) => {
        #[doc = concat!(include_str!("links.md"), include_str!($path))]
        pub mod $name {}
    };
}

page!(comparing: "../docs/comparing.md");
page!(costs: "../docs/costs.md");
page!(how_it_measures: "../docs/how-it-measures.md");
page!(intervals: "../docs/intervals.md");
page!(keys_and_variables: "../docs/keys-and-variables.md");
page!(meaning_of_numbers: "../docs/meaning-of-numbers.md");
page!(measurements: "../docs/measurements.md");
page!(production: "../docs/production.md");
