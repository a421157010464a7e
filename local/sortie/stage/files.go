package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/sortie/template"
)

// Assembly is the output of "cdk synth" for one stage.
type Assembly struct {
	Template template.Template
	// Account and Region are the target of the deployment; empty means the account and region
	// of the credentials.
	Account, Region string
	// BootstrapVersion is the minimum version of the CDK's bootstrap stack for the deployment.
	// BootstrapParameter is the SSM parameter with the current version. Both are zero if the
	// assembly does not have them.
	BootstrapVersion   int
	BootstrapParameter string
	// Written is the time at which it was written.
	Written time.Time
}

// ReadAssembly reads the assembly of a stage from the folder that "cdk synth" wrote.
func ReadAssembly(folder, stage string) (Assembly, error) {
	name := filepath.Join(folder, "manifest.json")
	text, err := os.ReadFile(name)
	if err != nil {
		return Assembly{}, fmt.Errorf("cannot read the assembly, which \"make synth\" writes: %w", err)
	}
	written, err := changed(name)
	if err != nil {
		return Assembly{}, err
	}
	var manifest struct {
		Artifacts map[string]struct {
			Environment string
			Properties  struct {
				TemplateFile                      string
				RequiresBootstrapStackVersion     int
				BootstrapStackVersionSsmParameter string
			}
		}
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return Assembly{}, fmt.Errorf("cannot read the assembly's manifest: %w", err)
	}
	artifact, ok := manifest.Artifacts["sortie-"+stage]
	if !ok {
		return Assembly{}, fmt.Errorf("the assembly in %s has %w %q: run make synth STAGE=%s", folder, ErrOtherStage, stage, stage)
	}
	of := artifact.Properties
	a := Assembly{BootstrapVersion: of.RequiresBootstrapStackVersion, BootstrapParameter: of.BootstrapStackVersionSsmParameter, Written: written}
	account, region, _ := strings.Cut(strings.TrimPrefix(artifact.Environment, "aws://"), "/")
	if account != "unknown-account" {
		a.Account = account
	}
	if region != "unknown-region" {
		a.Region = region
	}
	a.Template, err = template.Read(filepath.Join(folder, filepath.Base(artifact.Properties.TemplateFile)))
	return a, err
}

// ErrOtherStage means that the assembly does not contain the stage.
var ErrOtherStage = errors.New("no stage")

// changed returns the modification time of a file.
func changed(name string) (time.Time, error) {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot read the time of %s: %w", name, err)
	}
	return info.ModTime(), nil
}

// Settings is the settings file of all stages, infra/cdk.json.
type Settings struct {
	// Changed is the modification time of the file; zero means that the file is missing.
	Changed time.Time

	file string
	text map[string]any
}

// ReadSettings reads the file. A missing file has no settings.
func ReadSettings(file string) (*Settings, error) {
	s := &Settings{file: file, text: map[string]any{}}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the settings of stages: %w", err)
	}
	if err := json.Unmarshal(text, &s.text); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", file, err)
	}
	s.Changed, err = changed(file)
	return s, err
}

// entry returns the object of a stage, or nil.
func (s *Settings) entry(stage string) map[string]any {
	context, _ := s.text["context"].(map[string]any)
	stages, _ := context["stages"].(map[string]any)
	entry, _ := stages[stage].(map[string]any)
	return entry
}

// Has reports whether the file has an entry for a stage.
func (s *Settings) Has(stage string) bool { return s.entry(stage) != nil }

// Region returns the region of a stage; empty means the region of the credentials.
func (s *Settings) Region(stage string) string { return s.value(stage, "region") }

// Account returns the account of a stage; empty means the account of the credentials.
func (s *Settings) Account(stage string) string { return s.value(stage, "account") }

func (s *Settings) value(stage, key string) string {
	value, _ := s.entry(stage)[key].(string)
	return value
}

// Set changes one setting of a stage in the file.
func (s *Settings) Set(stage, key, value string) error {
	entry := s.entry(stage)
	if entry == nil {
		return fmt.Errorf("%s: stages.%s is missing", s.file, stage)
	}
	entry[key] = value
	text, err := json.MarshalIndent(s.text, "", "  ")
	if err == nil {
		err = os.WriteFile(s.file, append(text, '\n'), 0o644) //nolint:gosec // a public file of the repository
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", s.file, err)
	}
	return nil
}
