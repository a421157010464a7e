package supervisor

import (
	"fmt"
	"runtime/debug"
)

// VersionFlag makes Main print the Version of its program.
const VersionFlag = "--version"

// protocol is the version of the format of Spec. It changes with the format.
const protocol = 1

// Version identifies the build of a program that contains this package. Launch starts only
// a program of the same version.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Sprintf("protocol %d", protocol)
	}
	var revision, modified string
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			modified = s.Value
		}
	}
	return fmt.Sprintf("protocol %d, version %q, revision %q, modified %q", protocol, info.Main.Version, revision, modified)
}
