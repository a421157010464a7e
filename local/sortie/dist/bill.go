package main

import (
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"
)

// component is a part of a software bill of materials (CycloneDX 1.6).
type component struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
}

// bill returns the modules that the programs contain, as CycloneDX. The linker wrote their names
// and versions into the programs.
func bill(version string, modified time.Time, programs []string) ([]byte, error) {
	found := map[string]component{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(program), err)
		}
		found["std"] = component{"library", "std", info.GoVersion[len("go"):], "pkg:golang/std@" + info.GoVersion[len("go"):]}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			found[m.Path] = component{"library", m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version}
		}
	}
	parts := make([]component, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		parts = append(parts, found[name])
	}
	text, err := json.MarshalIndent(map[string]any{
		"$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json", "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"metadata": map[string]any{
			"timestamp": modified.Format(time.RFC3339),
			"component": component{"application", "sortie", version, ""},
		},
		"components": parts,
	}, "", "  ")
	return append(text, '\n'), err
}
