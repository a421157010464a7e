//go:build unix && !linux

package proctree

import "context"

// Reaps returns false, because this kernel makes no orphans children of this process.
func Reaps() bool { return false }

// ReapOrphans returns at once.
func ReapOrphans(context.Context) error { return nil }
