package deployment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/local/localstack/step"
)

// functionFlags build a function as it is built for AWS, but that a build that
// changes nothing links nothing: Go then finds its own mark in the file.
var functionFlags = []string{"build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w"}

// Programs lists the folders below functions with a program for Lambda: all that
// have a bootstrap but the worker, which is a container image.
func Programs(repository string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(repository, "functions", "*", "bootstrap", "main.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the functions: %w", err)
	}
	var names []string
	for _, file := range found {
		if name := filepath.Base(filepath.Dir(filepath.Dir(file))); name != "worker" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no functions", repository)
	}
	return names, nil
}

// buildAll builds the functions and the CDK app. What is a release is built already,
// and is marked.
func (d Deployment) buildAll(ctx context.Context) error {
	names, err := Programs(d.Repository)
	if err != nil {
		return err
	}
	if d.Release == "" {
		both, building := errgroup.WithContext(ctx)
		both.Go(func() error { return d.buildFunctions(building, names) })
		both.Go(func() error { return d.buildApp(building) })
		if err := both.Wait(); err != nil {
			return err
		}
	}
	for _, name := range names {
		if err := d.mark(name); err != nil {
			return err
		}
	}
	return nil
}

// buildFunctions compiles what the functions have in common once, and then links
// them.
func (d Deployment) buildFunctions(ctx context.Context, names []string) error {
	environ := step.Environ(d.Environ, "CGO_ENABLED=0", "GOOS="+d.OS, "GOARCH="+runtime.GOARCH)
	var packages []string
	for _, name := range names {
		packages = append(packages, bootstrap(name))
	}
	return d.timed(fmt.Sprintf("built %d functions", len(names)), func() error {
		if err := d.build(ctx, "functions", d.Repository, environ, slices.Concat(functionFlags, packages)); err != nil {
			return err
		}
		links, ctx := errgroup.WithContext(ctx)
		links.SetLimit(runtime.GOMAXPROCS(0))
		for _, name := range names {
			links.Go(func() error {
				args := slices.Concat(functionFlags, []string{"-o", filepath.Join(d.built(name), "bootstrap"), bootstrap(name)})
				return d.build(ctx, name, d.Repository, environ, args)
			})
		}
		return links.Wait()
	})
}

// built is the folder of a function's file.
func (d Deployment) built(name string) string {
	return filepath.Join(d.Repository, "infra", ".build", runtime.GOARCH, name)
}

// mark tells the release in a file beside a function's: what is deployed is
// another then.
func (d Deployment) mark(name string) error {
	file := filepath.Join(d.built(name), "release")
	if d.Release == "" {
		if err := os.RemoveAll(file); err != nil {
			return fmt.Errorf("cannot take a function's release away: %w", err)
		}
		return nil
	}
	if err := os.WriteFile(file, []byte(d.Release), 0o600); err != nil {
		return fmt.Errorf("cannot tell a function's release: %w", err)
	}
	return nil
}

func bootstrap(name string) string { return "./functions/" + name + "/bootstrap" }

// buildApp compiles the CDK app, so that no command of the CDK has to.
func (d Deployment) buildApp(ctx context.Context) error {
	return d.timed("built the CDK app", func() error {
		return d.build(ctx, "the CDK app", filepath.Join(d.Repository, "infra"), d.Environ,
			[]string{"build", "-trimpath", "-buildvcs=false", "-o", d.app(), "."})
	})
}

func (d Deployment) build(ctx context.Context, what, dir string, environ, args []string) error {
	log := filepath.Join(d.Work, "logs", "build-"+strings.ReplaceAll(what, " ", "-")+".log")
	return step.Run(ctx, "build "+what, step.Program{Path: d.Tools.Go, Args: args, Dir: dir, Env: environ, Log: log})
}

// variable gives a variable of an environment, empty where there is none.
func variable(environ []string, name string) string {
	for _, each := range environ {
		if value, ok := strings.CutPrefix(each, name+"="); ok {
			return value
		}
	}
	return ""
}

// HostOS is what functions run on that are processes of this host.
const HostOS = runtime.GOOS
