// Package private reads and writes files and folders that only their owner can access,
// such as those with keys and tokens.
//
// It refuses files and folders that belong to another user or that other users can
// access, and symbolic links. Another user therefore cannot substitute a secret.
// OpenBelow opens a file whose name comes from another program. Create and Replace leave
// either the complete file or no new file.
package private
