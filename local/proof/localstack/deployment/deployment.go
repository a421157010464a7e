// Package deployment builds Sortie's functions and its CDK app, and deploys them to a running
// LocalStack.
//
//	functions/*/bootstrap ──go build──► infra/.build ─┐
//	infra ──go build──► the app ──cdk synth───────────┴► cdk.out ──cdklocal deploy──► LocalStack
//
// It deploys the app in infra. The functions are built for the host's processor, because
// LocalStack runs them as processes. No step can reach an AWS account, because each step has
// LocalStack's address and keys, and no AWS variables of the environment.
package deployment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/local/proof/localstack/prerequisites"
	"github.com/sortie-dev/sortie/local/proof/localstack/step"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// The account, region and keys of LocalStack, which also checks signatures with the keys.
const (
	account = "000000000000"
	Region  = "us-east-1"
	Key     = "test"
)

// Deployment is one stage in a LocalStack.
type Deployment struct {
	// Repository is the folder of the repository. Work is a folder that is removed together
	// with the server.
	Repository, Work string
	// Server is the URL of LocalStack.
	Server string
	// OS is the operating system of the functions: the host's, or linux in a container.
	OS    string
	Tools prerequisites.Tools
	// CDK is the folder with cdklocal. Home is its home folder.
	CDK, Home string
	// Environ is the environment of the programs, as NAME=VALUE.
	Environ []string
	Clock   clock.Clock
	// Say prints progress, one line per call.
	Say func(format string, args ...any)

	// Stage is the name of the stage.
	Stage string
	// Machines is the URL of the Machines API that the functions call.
	Machines string
	// Settings has the run settings that differ from those of the stack. Stack has the stack's
	// own settings that differ from those of the stage in cdk.json.
	Settings, Stack map[string]string
	// Release is a name that is deployed with the files of the functions. If it is set, the
	// last build is deployed again and replaces the functions.
	Release string
}

// Outputs maps the names of the stack's outputs to their values.
type Outputs map[string]string

// Client returns the environment variables for an AWS client of LocalStack.
func Client(server string) []string {
	return []string{
		"AWS_ENDPOINT_URL=" + server,
		// Otherwise S3 uses virtual host names, which need DNS.
		"AWS_ENDPOINT_URL_S3=" + server,
		"AWS_ACCESS_KEY_ID=" + Key, "AWS_SECRET_ACCESS_KEY=" + Key,
		"AWS_REGION=" + Region, "AWS_DEFAULT_REGION=" + Region,
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// Run builds and deploys. It updates an existing deployment.
func (d Deployment) Run(ctx context.Context) (Outputs, error) {
	if err := os.MkdirAll(d.Work, 0o750); err != nil {
		return nil, fmt.Errorf("cannot create the deployment's folder: %w", err)
	}
	both, preparing := errgroup.WithContext(ctx)
	both.Go(func() error { return d.Prepare(preparing) })
	both.Go(func() error { return d.Bootstrap(preparing) })
	if err := both.Wait(); err != nil {
		return nil, err
	}
	return d.Deploy(ctx)
}

// Prepare builds everything, or marks the last build as a release, and writes the template. It
// does not need a running server.
func (d Deployment) Prepare(ctx context.Context) error {
	if err := d.buildAll(ctx); err != nil {
		return err
	}
	settings, err := json.Marshal(d.Settings)
	if err != nil {
		return fmt.Errorf("cannot encode the settings: %w", err)
	}
	args := []string{
		"--quiet", "--app", d.app(), "--output", d.template(),
		"-c", "stage=" + d.Stage, "-c", "localstack=" + d.Server, "-c", "arch=" + runtime.GOARCH,
		"-c", "account=" + account, "-c", "region=" + Region,
		"-c", "flyUrl=" + d.Machines, "-c", "settings=" + string(settings),
	}
	for _, key := range slices.Sorted(maps.Keys(d.Stack)) {
		args = append(args, "-c", key+"="+d.Stack[key])
	}
	return d.timed("wrote the template", func() error {
		return d.cdk(ctx, "write the template", filepath.Join(d.Repository, "infra"), "synth", args...)
	})
}

// Bootstrap creates the CDK's own resources once for each server.
func (d Deployment) Bootstrap(ctx context.Context) error {
	stamp := filepath.Join(d.Work, "bootstrapped")
	if _, err := os.Stat(stamp); err == nil {
		return nil
	}
	return d.timed("bootstrapped", func() error {
		if err := d.cdk(ctx, "bootstrap", d.Work, "bootstrap", "aws://"+account+"/"+Region); err != nil {
			return err
		}
		return os.WriteFile(stamp, nil, 0o600)
	})
}

// errNoOutputs is the error for an outputs file without the stack.
var errNoOutputs = errors.New("the stack has no outputs")

// Deploy deploys the result of Prepare. A busy LocalStack sometimes reports a complete stack
// without its outputs. Deploy then deploys once more, which only reads the outputs.
func (d Deployment) Deploy(ctx context.Context) (Outputs, error) {
	var outputs Outputs
	deploy := func() error {
		err := d.cdk(ctx, "deploy", d.Work, "deploy", "--all", "--app", d.template(), "--require-approval", "never",
			"--progress", "events", "--outputs-file", d.outputs())
		if err != nil {
			return err
		}
		outputs, err = d.Outputs()
		return err
	}
	err := d.timed("deployed", deploy)
	if errors.Is(err, errNoOutputs) {
		err = d.timed("deployed again", deploy)
	}
	return outputs, err
}

// Outputs returns the outputs of the last deployment, or fs.ErrNotExist if there was no
// deployment.
func (d Deployment) Outputs() (Outputs, error) {
	text, err := os.ReadFile(d.outputs())
	if err != nil {
		return nil, fmt.Errorf("cannot read the stack's outputs: %w", err)
	}
	var stacks map[string]Outputs
	if err := json.Unmarshal(text, &stacks); err != nil {
		return nil, fmt.Errorf("cannot read the stack's outputs: %w", err)
	}
	outputs, ok := stacks["sortie-"+d.Stage]
	if !ok {
		return nil, fmt.Errorf("sortie-%s: %w", d.Stage, errNoOutputs)
	}
	return outputs, nil
}

// Destroy removes the stack together with its data.
func (d Deployment) Destroy(ctx context.Context) error {
	return d.timed("destroyed", func() error {
		if err := d.cdk(ctx, "destroy", d.Work, "destroy", "--all", "--force", "--app", d.template()); err != nil {
			return err
		}
		return os.Remove(d.outputs())
	})
}

func (d Deployment) app() string      { return filepath.Join(d.Repository, "infra", ".cdk", "infra") }
func (d Deployment) template() string { return filepath.Join(d.Work, "cdk.out") }
func (d Deployment) outputs() string  { return filepath.Join(d.Work, "outputs.json") }

// cdk runs cdklocal in dir. This must not be infra, because the cdk.json there names an app
// that the command would look for.
func (d Deployment) cdk(ctx context.Context, what, dir, command string, args ...string) error {
	environ := step.Environ(d.Environ, slices.Concat(Client(d.Server), []string{
		"HOME=" + d.Home,
		"PATH=" + d.CDK + string(os.PathListSeparator) + filepath.Dir(d.Tools.Node) + string(os.PathListSeparator) + variable(d.Environ, "PATH"),
		"CDK_DISABLE_CLI_TELEMETRY=true", "CDK_DISABLE_LEGACY_EXPORT_WARNING=1",
		// Node 20 is sufficient.
		"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=1",
	})...)
	return step.Run(ctx, what, step.Program{
		Path: filepath.Join(d.CDK, "cdklocal"), Args: append([]string{command, "--ci"}, args...),
		Dir: dir, Env: environ, Log: filepath.Join(d.Work, "logs", command+".log"),
	})
}

// timed runs a step and, if it succeeds, prints its duration.
func (d Deployment) timed(what string, do func() error) error {
	started := d.Clock.Now()
	if err := do(); err != nil {
		return err
	}
	d.Say("%s in %.1f s", what, d.Clock.Now().Sub(started).Seconds())
	return nil
}
