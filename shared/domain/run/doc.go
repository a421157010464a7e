// Package run defines the life of a run: its record, its states, and the
// decision that each fact leads to.
//
//	fact + record + now --Decide--> record', events, effects, lease change
//
// Decide is pure: time, random numbers and ids are arguments, and it has no
// other input or output. The caller commits the whole decision in one
// transaction, or nothing of it, and then carries out the effects. Every effect
// is idempotent.
//
// One function writes states, and it checks the transition table. A run's events are numbered
// from 1 without gaps. A run ends once. A fact about an attempt that has ended changes nothing.
// The next state of the execution is a function of the record and the time: see RouteOf.
//
// The package does not depend on a store, a network, a clock or a random number generator.
package run
