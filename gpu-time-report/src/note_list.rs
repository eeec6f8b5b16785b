//! The order of notes: those about the function to look at first come first.

use crate::analysis::Analysis;
use crate::{Site, Snapshot};

/// The notes so far.
pub struct NoteList<'a> {
    snapshot: &'a Snapshot,
    /// The function that the first line of the report names.
    first: Option<&'a str>,
    about_first: Vec<String>,
    others: Vec<String>,
}

impl<'a> NoteList<'a> {
    pub fn new(analysis: &Analysis<'a>) -> NoteList<'a> {
        let Analysis { snapshot, lead, .. } = analysis;
        let first = lead.first.as_ref().map(|first| first.name);
        NoteList { snapshot, first, about_first: Vec::new(), others: Vec::new() }
    }

    /// Returns all functions: the one to look at first, then the others in the order of the report.
    pub fn sites(&self) -> impl Iterator<Item = &'a Site> + use<'a> {
        let (sites, first) = (&self.snapshot.sites, self.first);
        let is_first = move |site: &&Site| Some(site.name.as_str()) == first;
        sites.iter().filter(is_first).chain(sites.iter().filter(move |site| !is_first(site)))
    }

    /// Adds a note. `site` is the first function that it names.
    pub fn add(&mut self, site: &Site, note: String) {
        let is_first = Some(site.name.as_str()) == self.first;
        if is_first { &mut self.about_first } else { &mut self.others }.push(note);
    }

    /// Adds notes about the whole program.
    pub fn extend(&mut self, notes: impl IntoIterator<Item = String>) {
        self.others.extend(notes);
    }

    /// Returns the notes in order.
    pub fn into_lines(self) -> Vec<String> {
        [self.about_first, self.others].concat()
    }
}
