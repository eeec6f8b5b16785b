//! The table of the run's kernels.

use maud::{Markup, html};

use crate::marks::Printed;
use crate::run_kernels::RunKernel;
use crate::units::printable;

/// Renders the kernels, or nothing if there are none.
pub fn table(kernels: &[RunKernel], printed: &Printed) -> Markup {
    html! {
        @if !kernels.is_empty() {
            h2 { "Kernels" }
            div.scroll {
                table.kernels-of-run {
                    thead { tr { th { "kernel" } @for title in RunKernel::TITLES { th { (title) } } } }
                    tbody {
                        @for kernel in kernels {
                            tr {
                                th scope="row" {
                                    (printable(&kernel.name))
                                    @if !kernel.annotated { " " small.soft { (kernel.remark()) } }
                                }
                                @for figure in kernel.figures(printed) { td { (figure) } }
                            }
                        }
                    }
                }
            }
        }
    }
}
