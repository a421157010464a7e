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

	"github.com/sortie-dev/sortie/local/proof/localstack/step"
)

// functionFlags are the arguments that build a function as for AWS. Unlike there, an unchanged
// function is not linked again, because Go finds its build ID in the file.
var functionFlags = []string{"build", "-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w"}

// Programs returns the names of the folders in functions that have a program for Lambda: all
// with a bootstrap except worker and watch, which are container images.
func Programs(repository string) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(repository, "functions", "*", "bootstrap", "main.go"))
	if err != nil {
		return nil, fmt.Errorf("cannot list the functions: %w", err)
	}
	var names []string
	for _, file := range found {
		if name := filepath.Base(filepath.Dir(filepath.Dir(file))); name != "worker" && name != "watch" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no functions in %s", repository)
	}
	return names, nil
}

// buildAll builds the functions and the CDK app. For a release it only marks the functions,
// which are already built.
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

// buildFunctions compiles the packages of all functions together and then links the functions.
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
				d.seed(name)
				args := slices.Concat(functionFlags, []string{"-o", filepath.Join(d.built(name), "bootstrap"), bootstrap(name)})
				return d.build(ctx, name, d.Repository, environ, args)
			})
		}
		return links.Wait()
	})
}

// seed copies the program of a function that tests have built (package bootstraps), if none is
// built here. The build then only replaces it if it is outdated.
func (d Deployment) seed(name string) {
	file := filepath.Join(d.built(name), "bootstrap")
	text, err := os.ReadFile(filepath.Join(d.Repository, "out", "functions", name, "bootstrap"))
	if _, missing := os.Stat(file); err != nil || missing == nil || os.MkdirAll(d.built(name), 0o755) != nil { //nolint:gosec // a container's user reads it
		return
	}
	_ = os.WriteFile(file, text, 0o755) //nolint:gosec // likewise
}

// built returns the folder with the built file of a function.
func (d Deployment) built(name string) string {
	return filepath.Join(d.Repository, "infra", ".build", runtime.GOARCH, name)
}

// mark writes the name of the release into a file beside the function's file, which changes the
// digest of the function. Without a release it removes the file.
func (d Deployment) mark(name string) error {
	file := filepath.Join(d.built(name), "release")
	if d.Release == "" {
		if err := os.RemoveAll(file); err != nil {
			return fmt.Errorf("cannot remove a function's release: %w", err)
		}
		return nil
	}
	if err := os.WriteFile(file, []byte(d.Release), 0o600); err != nil {
		return fmt.Errorf("cannot write a function's release: %w", err)
	}
	return nil
}

func bootstrap(name string) string { return "./functions/" + name + "/bootstrap" }

// buildApp compiles the CDK app once for all CDK commands.
func (d Deployment) buildApp(ctx context.Context) error {
	return d.timed("built the CDK app", func() error {
		return d.build(ctx, "the CDK app", filepath.Join(d.Repository, "infra"), step.Environ(d.Environ, "CGO_ENABLED=0"),
			[]string{"build", "-trimpath", "-buildvcs=false", "-o", d.app(), "."})
	})
}

func (d Deployment) build(ctx context.Context, what, dir string, environ, args []string) error {
	log := filepath.Join(d.Work, "logs", "build-"+strings.ReplaceAll(what, " ", "-")+".log")
	return step.Run(ctx, "build "+what, step.Program{Path: d.Tools.Go, Args: args, Dir: dir, Env: environ, Log: log})
}

// variable returns the value of a variable in an environment, or "".
func variable(environ []string, name string) string {
	for _, each := range environ {
		if value, ok := strings.CutPrefix(each, name+"="); ok {
			return value
		}
	}
	return ""
}

// HostOS is the operating system of functions that run as processes on this host.
const HostOS = runtime.GOOS
