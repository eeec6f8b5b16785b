//! Programs that the compiler accepts or rejects, with its messages. They have a package of their own,
//! because each program is built with all of its package's dependencies.
