//! The shapes that need no unsafe code.
#![deny(warnings)]
#![forbid(unsafe_code)]

mod async_fns;
mod attributes;
mod blocks;
mod control;
#[allow(dead_code, unused_imports)] // Each root uses a part of it.
mod cuda;
mod drops;
mod fragments;
mod futures;
mod generated;
mod generics;
mod given_streams;
mod hygiene;
mod inferred_streams;
mod keys;
mod launch_positions;
mod launch_safe;
mod launches;
mod log;
mod macros;
mod methods;
mod patterns;
#[allow(dead_code, unused_imports)] // Each root uses a part of it.
mod support;
mod traits;
mod without_streams;

fn main() {
    support::log_panics();
    support::run! {
        generics:
            type_parameter where_clause const_parameter const_parameters_of_other_types
            elided_lifetime named_lifetimes higher_ranked_closure impl_trait_argument
            impl_trait_return impl_fn_return impl_fn_higher_ranked_return precise_capturing
            impl_trait_in_both_places boxed_closure coercion_to_dyn coercion_to_fn_pointer
            unsized_parameter associated_items generic_associated_type
            generic_impl_generic_method recursive_generic inferred_return
            closure_argument_borrows_mutably fn_item_stays_zero_sized;
        methods:
            by_reference by_value smart_pointer_receivers named_receiver_lifetime enum_method
            same_name_in_two_impls operators standard_traits;
        traits:
            trait_method trait_default trait_associated_function generic_trait
            trait_impl_trait_return impl_for_foreign_types supertrait_dispatch;
        control:
            question_mark_everywhere question_mark_on_option question_mark_converts
            question_mark_in_tail question_mark_on_poll early_return labels let_else
            never_by_panic never_by_loop never_by_a_never_call diverging_bodies panic_places
            unwinding_drops catch_inside called_while_unwinding recursion loops threads
            thread_exit lazy_initialiser;
        drops:
            locals_and_parameters no_statement_at_all wildcard_and_partial_patterns
            moved_out_and_conditional partially_moved_box shadowed_locals
            tail_temporary_against_local tail_temporary_in_match tail_temporary_in_block
            if_let_scrutinee tail_borrow_of_parameter extended_temporaries statement_temporaries
            closure_captures struct_fields_and_assignment early_exits reborrowed_results
            returned_values discarded_result reference_counts;
        patterns:
            tuples_and_structs mutable_bindings reference_patterns ref_and_ref_mut
            arrays_and_bindings or_patterns unused_and_unit conditional_parameters
            conditional_generics conditional_statements conditional_function
            parameter_attributes parameters_named_oddly;
        attributes:
            inner_attributes documented track_caller must_use code_generation deprecated
            fulfilled_expectations tool_attributes written_twice_over visibilities
            functions_in_odd_places;
        hygiene:
            shadowed_types shadowed_primitives shadowed_crates_and_modules shadowed_macros
            no_implicit_prelude locals_with_our_names items_with_our_names
            type_parameters_with_our_names constants_as_bindings blanket_traits_in_scope
            globs_and_imports_in_the_body user_methods_with_our_names renamed_imports;
        generated:
            from_fragments body_as_a_block_fragment launching_block_fragment
            body_as_a_tail_macro arguments_from_the_macro whole_items_passed_through
            impls_from_a_macro self_through_a_macro local_names_from_the_macro hidden_launches
            launches_within_macro_arguments recursion_by_token_muncher
            parenthesised_types_and_paths;
        fragments:
            expressions_as_operands expressions_of_every_kind places_of_panics
            patterns_and_types marked_bodies members_of_containers leading_items values_of_keys
            scopes;
        async_fns:
            plain_async async_borrows async_auto_traits async_methods async_in_traits
            async_question_mark async_drop_order async_tail_temporaries
            async_cancelled_in_a_temporary async_panics async_never async_recursion
            async_patterns_and_generics async_lints_stay;
        futures:
            async_blocks_and_closures_within awaits_in_every_position
            returns_a_future_by_tail_block returns_a_boxed_future async_trait_output
            manual_future moved_between_threads two_at_once async_launches;
        inferred_streams:
            inferred_from_a_parameter inferred_from_an_option
            inferred_past_configured_out_parameters inferred_from_the_builder
            stream_moved_by_the_body stream_in_patterns;
        given_streams:
            given_paths given_owned_values given_options_and_results given_with_question_mark
            given_guards given_constants given_generic_values given_blocks;
        launch_positions:
            statement_positions tail_position conditions_and_scrutinees loops
            exits_within_the_arguments launch_in_a_launch attributes_on_launches
            launch_temporaries borrows_across_launches launches_out_of_sight
            returns_an_iterator_after_launching;
        launches:
            results_of_every_type launches_that_diverge launches_by_path launches_by_other_names
            generic_launches launches_with_track_caller launches_on_many_threads;
        macros:
            macro_places macro_values macro_assignments awaiting_macro_places
            tail_macros_of_several_statements launches_that_the_compiler_evaluates
            launch_as_a_constructor;
        keys:
            no_arguments names warm_up cold_and_sleep scopes_and_clocks work barriers renamed_crate
            everything_at_once;
        blocks:
            block_values block_drops block_awaits whole_items;
        without_streams:
            bare_functions awaits_of_what_becomes_a_future awaits_of_borrowed_and_boxed_futures
            awaits_that_panic;
    }
}
