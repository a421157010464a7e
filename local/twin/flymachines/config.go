package flymachines

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/clock"
)

// Config is what a Server needs. Dir, Apps, Starter, Clock and Log are
// required.
type Config struct {
	// Dir is the server's folder; it is made where it is missing.
	Dir string
	// Token is what requests must carry; empty takes any token, but not none.
	Token string
	// Apps exist from the start. Others can be created over the API.
	Apps []string
	// Images binds an image reference to a program and its first arguments.
	Images map[string][]string
	// Starter runs the programs.
	Starter Starter
	// Regions can be asked for; the first is the default. Empty: Fly's.
	Regions []string
	// Path is the programs' PATH; empty is DefaultPath.
	Path string
	// OutputLimit bounds what is kept of a machine's output, in bytes; 0 is
	// output.DefaultLimit.
	OutputLimit int
	// Keep is how long a machine that is gone stays readable, from its end or
	// from Open, and KeepMost how many of them do. 0 is an hour, and a thousand.
	Keep     time.Duration
	KeepMost int
	// Faults is what goes wrong from the start.
	Faults faults.Plan

	Clock clock.Clock
	// Random makes ids; nil is crypto/rand.
	Random io.Reader
	Log    *slog.Logger
}

// DefaultPath is where programs look for others where nothing else is said.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// complete checks the configuration, names every problem, and fills in what
// was left out.
func (c Config) complete() (Config, error) {
	var problems []error
	missing := func(is bool, what string) {
		if is {
			problems = append(problems, errors.New(what+" is missing"))
		}
	}
	missing(c.Dir == "", "the folder")
	missing(len(c.Apps) == 0, "an app")
	missing(c.Starter == nil, "the starter")
	missing(c.Clock == nil, "the clock")
	missing(c.Log == nil, "the logger")
	for image, argv := range c.Images {
		missing(len(argv) == 0 || argv[0] == "", "the program of image "+image)
	}
	for _, app := range c.Apps {
		if !validName(app) {
			problems = append(problems, fmt.Errorf("app name %q is not 1 to 63 of a-z, 0-9 and -", app))
		}
	}
	if err := c.Faults.Validate(); err != nil {
		problems = append(problems, err)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		problems = append(problems, err)
	}
	c.Dir = dir
	if len(c.Regions) == 0 {
		c.Regions = defaultRegions()
	}
	if c.Path == "" {
		c.Path = DefaultPath
	}
	if c.Keep <= 0 {
		c.Keep = time.Hour
	}
	if c.KeepMost <= 0 {
		c.KeepMost = 1000
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if len(problems) > 0 {
		return Config{}, fmt.Errorf("cannot serve machines: %w", errors.Join(problems...))
	}
	return c, nil
}

// validName holds an app or machine name to Fly's rule.
func validName(name string) bool {
	if name == "" || len(name) > 63 {
		return false
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// defaultRegions are Fly's, the contract's default first.
func defaultRegions() []string {
	return []string{
		"ord", "ams", "arn", "bom", "cdg", "dfw", "ewr", "fra", "gru", "iad", "jnb", "lax", "lhr", "nrt", "sin",
		"sjc", "syd", "yyz",
	}
}
