//go:build unix

package proctree

import "strings"

// Mark is an entry of the environment, NAME=VALUE, with which the program of one tree
// starts and no other program of the host. It identifies the tree when its subreaper was
// killed. The empty mark identifies nothing.
type Mark string

// group returns the name of the tree's cgroup.
func (m Mark) group() string {
	_, value, _ := strings.Cut(string(m), "=")
	return "sortie-" + value
}
