// Package display writes text for people: the progress of a run, tables, figures
// and log lines.
//
// Progress is drawn only on a terminal: as one line that is overwritten and never wider than
// the terminal. Elsewhere each state is a plain line. Text from workers and servers is cleaned
// first, so no control character of it reaches a terminal.
package display
