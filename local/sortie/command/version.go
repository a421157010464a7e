package command

import (
	"context"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// built is what the build wrote into the program.
type built struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Time is that of the revision; Modified says that the sources were not
	// quite those.
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func build() built {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return built{Version: "unknown"}
	}
	b := built{Version: strings.Trim(info.Main.Version, "()"), Go: info.GoVersion}
	var system, processor string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "GOOS":
			system = s.Value
		case "GOARCH":
			processor = s.Value
		}
	}
	b.Platform = system + "/" + processor
	return b
}

// versionOf is the build in one word.
func versionOf(b built) string {
	switch {
	case b.Version != "" && b.Version != "devel":
		return b.Version
	case len(b.Revision) >= 12:
		return b.Revision[:12]
	}
	return "devel"
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show what was built", Example: "  sortie version --json",
		Args: cobra.NoArgs,
		RunE: does(func(context.Context, []string) error {
			b := build()
			if a.json {
				return a.print(b)
			}
			text := "sortie " + versionOf(b)
			if b.Revision != "" {
				text += ", revision " + b.Revision
				if b.Modified {
					text += " with changes"
				}
			}
			return a.say("%s, %s, %s\n", text, b.Go, b.Platform)
		}),
	}
}
