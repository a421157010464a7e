package command

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// built is the build information in the program.
type built struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Time is the time of the revision. Modified reports changes since then.
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

// versionOf returns the version of the build as one word.
func versionOf(b built) string {
	switch {
	case b.Version != "" && b.Version != "devel":
		return b.Version
	case len(b.Revision) >= 12:
		return b.Revision[:12]
	}
	return "devel"
}

// describe formats the build for people.
func describe(b built) string {
	text := "sortie " + versionOf(b)
	if b.Revision != "" {
		text += ", revision " + b.Revision
		if b.Modified {
			text += " with changes"
		}
	}
	return fmt.Sprintf("%s, %s, %s", text, b.Go, b.Platform)
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Example: "  sortie version --json",
		Args: exactly(),
		RunE: does(func(context.Context, []string) error { return a.showVersion() }),
	}
}

func (a *app) showVersion() error {
	if a.json {
		return a.print(build())
	}
	return a.say("%s\n", describe(build()))
}
