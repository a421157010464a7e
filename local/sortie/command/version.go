package command

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/mod/module"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/shared/wire/contract"
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
	b := built{Version: contract.APIVersion, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if module.IsPseudoVersion(info.Main.Version) { // of "go install", which has no settings
		b.Revision, _ = module.PseudoVersionRev(info.Main.Version)
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// describe formats the build for people.
func describe(b built) string {
	text := "sortie " + b.Version
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
		RunE: cli.Does(func(context.Context, []string) error { return a.showVersion() }),
	}
}

func (a *app) showVersion() error {
	return a.Result(build(), "%s\n", describe(build()))
}
