//go:build unix

package proctree

import "strings"

// Mark is an entry of the environment, NAME=VALUE, with which only the program of one tree on
// the host starts. It identifies the tree after its subreaper was killed. The empty mark
// identifies no tree.
type Mark string

// group returns the name of the tree's cgroup.
func (m Mark) group() string {
	_, value, _ := strings.Cut(string(m), "=")
	return "sortie-" + value
}
