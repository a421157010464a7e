package stage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/template"
)

// Assembly is the output of "cdk synth" for one stage.
type Assembly struct {
	Template template.Template
	// Region is where it is deployed; empty is the region of the credentials.
	Region string
}

// ReadAssembly reads the assembly of a stage from the folder that "cdk synth" wrote.
func ReadAssembly(folder, stage string) (Assembly, error) {
	text, err := os.ReadFile(filepath.Join(folder, "manifest.json"))
	if err != nil {
		return Assembly{}, fmt.Errorf("cannot read the assembly, which \"make synth\" writes: %w", err)
	}
	var manifest struct {
		Artifacts map[string]struct {
			Environment string
			Properties  struct{ TemplateFile string }
		}
	}
	if err := json.Unmarshal(text, &manifest); err != nil {
		return Assembly{}, fmt.Errorf("cannot read the assembly's manifest: %w", err)
	}
	artifact, ok := manifest.Artifacts["sortie-"+stage]
	if !ok {
		return Assembly{}, fmt.Errorf("the assembly in %s has no stage %q: run make synth STAGE=%s", folder, stage, stage)
	}
	a := Assembly{}
	if _, region, _ := strings.Cut(strings.TrimPrefix(artifact.Environment, "aws://"), "/"); region != "unknown-region" {
		a.Region = region
	}
	a.Template, err = template.Read(filepath.Join(folder, filepath.Base(artifact.Properties.TemplateFile)))
	return a, err
}

// Settings is the file of the settings of all stages, infra/cdk.json.
type Settings struct {
	file string
	text map[string]any
}

// ReadSettings reads the file. A missing one has no settings.
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
	return s, nil
}

// entry is the object of a stage, or nil.
func (s *Settings) entry(stage string) map[string]any {
	context, _ := s.text["context"].(map[string]any)
	stages, _ := context["stages"].(map[string]any)
	entry, _ := stages[stage].(map[string]any)
	return entry
}

// Region is the region of a stage; empty is that of the credentials.
func (s *Settings) Region(stage string) string {
	region, _ := s.entry(stage)["region"].(string)
	return region
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
