// Package command is the command line of Sortie: what the sub-commands are, what
// they print, and how they end.
//
// Standard output carries results: one JSON object with --json, and otherwise
// what a script may want to read. Everything else, progress and errors, goes to
// standard error. Errors say what happened and what to do, never where in the
// code. Exit codes are part of the interface: see the constants.
//
// The package knows no environment, clock or signal but those of its Program;
// main hands them in.
package command
