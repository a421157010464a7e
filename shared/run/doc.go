// Package run is the life of a run: its record, its states, and what each fact
// makes of it.
//
//	fact + record + now --Decide--> record', events, effects, lease change
//
// Decide is pure: time, chance and ids are arguments, and nothing is read or
// written but what it is given. Whoever calls it commits the whole decision in
// one transaction, or nothing of it, and only then acts on the effects. Every
// effect may be repeated.
//
// The package promises that every state is written by one function, which
// knows the transition table; that a run's events are numbered from 1 without
// gaps; that a run ends once; and that a fact about an attempt that is over
// changes nothing. Where the execution has to go is a function of the record
// alone: see Route.
//
// It refuses to know a store, a network, a clock or a random number.
package run
