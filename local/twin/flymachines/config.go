package flymachines

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/sortie-dev/sortie/local/twin/flymachines/environment"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Config configures a Server. Dir, Apps, Starter, Clock and Log are required.
type Config struct {
	// Dir is the server's folder. New creates it if it is missing.
	Dir string
	// Token is the token that requests must carry. If it is empty, any token is
	// accepted, but a request without one is refused.
	Token string
	// Apps exist from the start. The API can create others.
	Apps []string
	// Images maps an image reference to a program and its first arguments.
	Images map[string][]string
	// ExecImages permits images "exec:PATH": the program at this path of the host.
	ExecImages bool
	// Wrap runs the programs of images whose environment has SORTIE_COMPLETION=exit in the same
	// way as sortie-exec does in a container, with the flags WrapperFlags. The environment of
	// this wrapper has only PATH, HOME, TMPDIR and the id of the machine.
	Wrap         bool
	WrapperFlags []string
	// Loopback gives machines addresses of the host's loopback network, so that their programs
	// can be called. Linux has all of them; other systems need an alias for each.
	Loopback bool
	// Starter runs the programs.
	Starter Starter
	// Regions are the regions that clients can ask for; the first is the
	// default. Empty means Fly's regions.
	Regions []string
	// Path is the programs' PATH; empty is environment.DefaultPath.
	Path string
	// OutputLimit is the largest stored output of a machine, in bytes; 0 means
	// output.DefaultLimit.
	OutputLimit int
	// KeepFor is the time for which a destroyed machine stays readable, from its end or from Open;
	// 0 means one hour. KeepMost is the number of destroyed machines that stay readable; 0
	// means 1000.
	KeepFor  time.Duration
	KeepMost int
	// Faults is the initial fault plan.
	Faults faults.Plan
	// Delays are the delays of the platform; zero values mean no delay.
	Delays Delays

	Clock clock.Clock
	// Random is the source of ids; nil means crypto/rand.
	Random io.Reader
	Log    *slog.Logger
}

// Delays are how long a platform takes to create and to start machines.
type Delays struct {
	// CreateLeast and CreateMost bound the time until a creation is answered. All values
	// between them are equally likely.
	CreateLeast, CreateMost time.Duration
	// Start is the time from a start request, or from the answer to a creation, to the start of
	// the program.
	Start time.Duration
}

// RealDelays returns the delays observed on Fly for an image that is cached on its host.
func RealDelays() Delays {
	return Delays{CreateLeast: 1100 * time.Millisecond, CreateMost: 2500 * time.Millisecond, Start: 300 * time.Millisecond}
}

func (d Delays) check() error {
	if d.CreateLeast < 0 || d.CreateMost < d.CreateLeast || d.Start < 0 {
		return fmt.Errorf("delays of %s to %s and %s are out of range, want 0 or more and the least first", d.CreateLeast, d.CreateMost, d.Start)
	}
	return nil
}

// complete validates the configuration, reports every problem at once, and sets
// defaults.
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
	problems = append(problems, c.Faults.Validate(), c.Delays.check())
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		problems = append(problems, err)
	}
	c.Dir = dir
	if len(c.Regions) == 0 {
		c.Regions = defaultRegions()
	}
	if c.Path == "" {
		c.Path = environment.DefaultPath
	}
	if c.KeepFor <= 0 {
		c.KeepFor = time.Hour
	}
	if c.KeepMost <= 0 {
		c.KeepMost = 1000
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if err := errors.Join(problems...); err != nil {
		return Config{}, fmt.Errorf("cannot serve machines: %w", err)
	}
	return c, nil
}

// validName reports whether name fits Fly's rule for apps and machines.
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

// defaultRegions are Fly's regions, the export contract's default first.
func defaultRegions() []string {
	return []string{
		"ord", "ams", "arn", "bom", "cdg", "dfw", "ewr", "fra", "gru", "iad", "jnb", "lax", "lhr", "nrt", "sin",
		"sjc", "syd", "yyz",
	}
}
