package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/sortie-dev/sortie/local/proof/report/figure"
)

// peersModule is the module that links the clients of other systems, and pins them.
const peersModule = "local/proof/report/peers"

// Nomad's module replaces some of its requirements, one by the module in its folder api, so it
// is built from a folder with both. Go compares the downloads with its checksum database.
const (
	nomadModule  = "github.com/hashicorp/nomad"
	nomadVersion = "v1.10.5"
	// nomadAPI is the module in the folder api of that version.
	nomadAPI = "v0.0.0-20250909143645-a3b86c697f38"
)

// measureSchedulers gives the same programs to Sortie and to schedulers that build here.
func measureSchedulers(ctx context.Context, p *figure.Part) error {
	folder, err := builtPeers(ctx)
	if err != nil {
		return err
	}
	if err := buildNomad(ctx, folder); err != nil {
		p.Note("Nomad was not built: %s.", err)
	}
	return compareWith(ctx, p, folder, "schedulers")
}

// measureStreams gives the same events to Sortie's stream and to other event servers.
func measureStreams(ctx context.Context, p *figure.Part) error {
	folder, err := builtPeers(ctx)
	if err != nil {
		return err
	}
	return compareWith(ctx, p, folder, "streams")
}

// static are the variables of each build: no program depends on libraries of this machine.
var static = []string{"CGO_ENABLED=0"}

// builtPeers builds Sortie and the peers that the module pins, and returns their folder.
func builtPeers(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find a folder for the peers: %w", err)
	}
	folder := filepath.Join(cache, "sortie", "peers")
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", fmt.Errorf("cannot create a folder for the peers: %w", err)
	}
	for name, path := range map[string]string{"sortie": "./local/sortie", "sortie-exec": "./shared/sdk/go/sortie-exec"} {
		if _, err := output(ctx, static, "go", "build", "-o", filepath.Join(folder, name), path); err != nil {
			return "", err
		}
	}
	for name, path := range map[string]string{
		"peers": ".", "temporal": "github.com/temporalio/cli/cmd/temporal", "nats-server": "github.com/nats-io/nats-server/v2",
	} {
		fmt.Fprintf(os.Stderr, "building %s ...\n", name)
		if _, err := output(ctx, static, "go", "-C", peersModule, "build", "-ldflags=-s -w", "-o", filepath.Join(folder, name), path); err != nil {
			return "", err
		}
	}
	return folder, nil
}

// buildNomad builds Nomad once.
func buildNomad(ctx context.Context, folder string) error {
	program := filepath.Join(folder, "nomad")
	if _, err := os.Stat(program + "-" + nomadVersion); err == nil {
		return nil
	}
	fmt.Fprintln(os.Stderr, "building nomad ...")
	sources, err := os.MkdirTemp("", "sortie-nomad-") // the module cache is read-only
	if err != nil {
		return fmt.Errorf("cannot copy Nomad: %w", err)
	}
	defer func() { _ = os.RemoveAll(sources) }()
	if err := copyModule(ctx, nomadModule+"@"+nomadVersion, sources); err != nil {
		return err
	}
	if err := copyModule(ctx, nomadModule+"/api@"+nomadAPI, filepath.Join(sources, "api")); err != nil {
		return err
	}
	// It needs C for the namespaces of its tasks.
	if _, err := output(ctx, []string{"CGO_ENABLED=1"}, "go", "-C", sources, "build", "-ldflags=-s -w", "-o", program, "."); err != nil {
		return err
	}
	return os.WriteFile(program+"-"+nomadVersion, nil, 0o600)
}

// copyModule downloads a module and copies it to a folder.
func copyModule(ctx context.Context, module, folder string) error {
	text, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	if err != nil {
		return fmt.Errorf("cannot download %s: %w", module, err)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(text, &downloaded); err != nil || downloaded.Dir == "" {
		return errors.Join(fmt.Errorf("the download of %s has no folder", module), err)
	}
	if err := os.CopyFS(folder, os.DirFS(downloaded.Dir)); err != nil {
		return fmt.Errorf("cannot copy %s: %w", module, err)
	}
	return nil
}

// compareWith runs a measurement of the peers' program.
func compareWith(ctx context.Context, p *figure.Part, folder, what string) error {
	command := exec.CommandContext(ctx, filepath.Join(folder, "peers"), what)
	command.Env = append(os.Environ(), "SORTIE="+filepath.Join(folder, "sortie"), "PEERS="+folder, "NOMAD_VERSION="+nomadVersion)
	command.Stderr = os.Stderr
	text, err := command.Output()
	if err != nil {
		return fmt.Errorf("peers %s: %w", what, err)
	}
	var result struct {
		Figures []figure.Figure
		Table   string
		Notes   []string
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return fmt.Errorf("cannot read the peers: %w", err)
	}
	p.Figures, p.Tables, p.Notes = append(p.Figures, result.Figures...), append(p.Tables, result.Table), append(p.Notes, result.Notes...)
	return nil
}
