// Package display shows people what happens: the progress of a run, tables and
// figures.
//
// Progress is drawn only on a terminal, as one line that is written over and
// never wider than the terminal. Anywhere else each state is a plain line of its
// own, and nothing is written over. What comes from a worker or a server is
// cleaned first: no control character of theirs reaches a terminal.
package display
