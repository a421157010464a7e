package worker

import (
	"maps"
	"slices"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/dc"
	"github.com/sortie-dev/sortie/functions/worker/formats/marcxml"
	"github.com/sortie-dev/sortie/functions/worker/formats/mods"
)

// formatTable has one line for each format, by its name in EXPORT_FORMAT.
func formatTable() map[string]func(formats.Options) formats.Format {
	return map[string]func(formats.Options) formats.Format{
		"mods":    func(o formats.Options) formats.Format { return mods.New(o) },
		"dc":      func(o formats.Options) formats.Format { return dc.New(o) },
		"marcxml": func(o formats.Options) formats.Format { return marcxml.New(o) },
	}
}

// FormatNames returns the names of the formats, sorted.
func FormatNames() []string { return slices.Sorted(maps.Keys(formatTable())) }
