// Package port declares the interfaces that the use cases depend on, such as Store, Executions,
// Runner, Outputs and Feed, with their types and errors.
//
// Each interface comment is a contract. Package porttest has one conformance suite per
// interface; every adapter and every fake passes it. The package contains no logic beyond
// constructors and checks of its own types.
package port
