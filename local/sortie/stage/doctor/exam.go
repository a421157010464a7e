package doctor

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/sortie/stage"
	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// defaultLimit is the time limit of one check.
const defaultLimit = 15 * time.Second

// Resolver looks up DNS names. *net.Resolver implements it.
type Resolver interface {
	LookupCNAME(ctx context.Context, host string) (string, error)
	LookupHost(ctx context.Context, host string) ([]string, error)
}

// Config configures Run. HTTP, DNS and Clock are required.
type Config struct {
	// Stage is the name of the stage. Settings is its settings file. Entry reports whether the
	// file has an entry of the stage.
	Stage, Settings string
	Entry           bool
	// Account and Region are the values in the settings; empty means the account and region of
	// the credentials.
	Account, Region string
	// Assembly is the output of "make synth" for the stage, or nil. Stale means that the
	// settings have changed since.
	Assembly *stage.Assembly
	Stale    bool
	// AWS has the credentials. AWSErr is the error if they are missing. The region of AWS
	// applies if Region is empty.
	AWS    aws.Config
	AWSErr error
	HTTP   *http.Client
	DNS    Resolver
	Clock  clock.Clock
	// Limit is the time limit of each check; 0 means 15 seconds.
	Limit time.Duration
}

// exam is one run of the checks, with the results of earlier checks.
type exam struct {
	Config
	plan template.Plan
	// caller is the owner of the credentials. callerErr is set if it is unknown.
	caller    identity
	callerErr error
	// deployed is the stack, or nil if it does not exist. deployedErr is set if that is
	// unknown.
	deployed    *stage.Stage
	deployedErr error
	// documents are the valid secrets, by kind.
	documents map[string]secrets.Document
	// present is the plan of the deployed template.
	present template.Plan
}

// check makes one check, or several of one kind.
type check func(*exam, context.Context) []Finding

// checks are in the order of a stage's setup.
var checks = []check{
	(*exam).settings, (*exam).credentials, (*exam).bootstrap, (*exam).concurrency, (*exam).requests, (*exam).stack,
	(*exam).secrets, (*exam).fly, (*exam).buckets, (*exam).mail, (*exam).certificate, (*exam).domain, (*exam).canary, (*exam).api,
}

// Run makes the checks that the stage needs, in sequence. It calls each with every Finding as
// soon as it is made.
func Run(ctx context.Context, cfg Config, each func(Finding)) {
	e := &exam{Config: cfg, documents: map[string]secrets.Document{}}
	if cfg.Region != "" {
		e.AWS.Region = cfg.Region
	}
	e.limited(ctx, func(ctx context.Context) { e.caller, e.callerErr = e.identify(ctx) })
	e.limited(ctx, func(ctx context.Context) { e.deployed, e.deployedErr = e.find(ctx) })
	if e.deployed != nil {
		e.present = template.PlanOf(e.deployed.Template)
	}
	switch {
	case cfg.Assembly != nil:
		e.plan = template.PlanOf(cfg.Assembly.Template)
	case e.deployed != nil:
		e.plan = e.present
	}
	for _, one := range checks {
		var found []Finding
		e.limited(ctx, func(ctx context.Context) { found = one(e, ctx) })
		if ctx.Err() != nil {
			return
		}
		for _, f := range found {
			each(f)
		}
	}
}

func (e *exam) limited(ctx context.Context, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(e.Limit, defaultLimit))
	defer cancel()
	do(ctx)
}

// planned reports whether e.plan is known.
func (e *exam) planned() bool { return e.Assembly != nil || e.deployed != nil }

// synth returns the command that writes the assembly.
func (e *exam) synth() string { return "make synth STAGE=" + e.Stage }

// deploy returns the command that deploys the stage.
func (e *exam) deploy() string { return "make deploy STAGE=" + e.Stage }

// put returns the command that writes a secret from standard input.
func (e *exam) put(kind string) string {
	return "bin/sortie secrets put " + kind + " --stage " + e.Stage
}

// entry returns the path of a setting of the stage in the settings file.
func (e *exam) entry(key string) string { return "stages." + e.Stage + "." + key }

// settings checks that the settings of the stage exist and that the assembly is up to date.
func (e *exam) settings(context.Context) []Finding {
	const name = "settings"
	switch {
	case !e.Entry && e.Stage != "dev":
		return []Finding{missing(name, "stages."+e.Stage+" is not in "+e.Settings,
			`add "`+e.Stage+`": {"region": "…"} to context.stages in `+e.Settings+", then "+e.synth()+", which names what else is needed")}
	case e.Assembly != nil && e.Stale:
		return []Finding{wrong(name, e.Settings+" was changed after the template was written", e.synth())}
	case e.Assembly != nil:
		return []Finding{ok(name, "%s, as synthesised", e.Settings)}
	case e.deployed != nil:
		return []Finding{ok(name, "those of the deployed template")}
	}
	return []Finding{missing(name, "the template of the stage, which says what it needs, is not written", e.synth())}
}

// unreached returns the finding of a check that needs credentials, or nil if they work.
func (e *exam) unreached(check string) []Finding {
	if e.callerErr == nil {
		return nil
	}
	return []Finding{unknown(check, "not checked: the credentials do not work", "do what the line credentials says")}
}

// undeployed returns the finding of a check that needs the stack, or nil if it exists.
func (e *exam) undeployed(check string) []Finding {
	switch {
	case e.callerErr != nil:
		return e.unreached(check)
	case e.deployedErr != nil:
		return []Finding{unknown(check, "not checked: the stack could not be read", "do what the line stack says")}
	case e.deployed == nil:
		return []Finding{unknown(check, "not checked: the stage is not deployed", e.deploy())}
	}
	return nil
}

// partition returns the partition of the caller's ARN, such as "aws".
func (e *exam) partition() string {
	if parts := strings.Split(e.caller.arn, ":"); len(parts) > 1 {
		return parts[1]
	}
	return "aws"
}

// Checks lists the names of the checks. The name in a Finding may have the checked object after
// a space, as in "secret fly".
func Checks() []string {
	return []string{
		"settings", "credentials", "bootstrap", "concurrency", "requests", "stack", "secret", "fly", "bucket", "key", "lifecycle",
		"mail", "certificate", "domain", "canary", "api",
	}
}
