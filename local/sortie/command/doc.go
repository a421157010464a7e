// Package command implements the command line of Sortie.
//
// Standard output has results: one JSON object with --json, otherwise text that a script can
// parse. Progress, notes and errors go to standard error. An error says what happened and what
// to do. Exit codes are part of the interface: see package cli.
//
// The package reads the environment, the clock and signals only through a cli.Program.
package command
