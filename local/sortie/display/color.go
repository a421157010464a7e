package display

import (
	"io"

	"github.com/sortie-dev/sortie/shared/domain/run"
)

// Colored is a writer to a terminal on which tables have colours.
type Colored struct{ io.Writer }

// The colours are SGR sequences of ECMA-48, which every terminal maps to its own palette.
const (
	colorRed, colorGreen, colorYellow, colorCyan = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m"

	bold, plain = "\x1b[1m", "\x1b[0m"
)

// Red returns the text in red.
func Red(text string) string { return colorRed + text + plain }

// stateColors are the colours of cells whose text is a state.
var stateColors = map[string]string{
	string(run.Running): colorCyan, string(run.ContainerCreating): colorCyan, string(run.Completed): colorGreen,
	string(run.Failed): colorRed, string(run.Orphaned): colorRed, string(run.Cancelled): colorYellow,
}

// paint colours a padded cell whose text is a state.
func paint(cell, padded string) string {
	if color := stateColors[cell]; color != "" {
		return color + padded + plain
	}
	return padded
}
