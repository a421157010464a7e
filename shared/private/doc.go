// Package private reads and writes files and folders that only their owner can
// reach, such as those with keys and tokens.
//
// It refuses what another user owns, what other users can read or write, and
// symbolic links, so that a secret cannot come from a file that another user
// chose. OpenBelow opens a file whose name
// another program chose. Create and Replace leave a complete file or none.
package private
