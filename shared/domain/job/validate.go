package job

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// Deployment has the properties of a deployment on which the validity of a definition depends.
type Deployment struct {
	// Policy has the defaults of the runs.
	Policy spec.Policy
	// HasPool reports whether a pool exists; nil means that every pool does.
	HasPool func(name string) bool
	// OnKubernetes reports whether the machines of a pool are pods; nil means that no pool has
	// pods.
	OnKubernetes func(pool string) bool
	// CheckPodSpec returns the faults of a pod specification, each with the path of its field;
	// nil allows every one.
	CheckPodSpec func(document json.RawMessage) []*fault.Fault
	// CheckURL returns an error if hooks must not call the address, or that of a mail server
	// (guard.MailAddress); nil allows every address.
	CheckURL func(url string) error
	// ID is the id that the definition must have. A definition without an id gets it. Empty
	// allows every id.
	ID string
	// NoBucketKeys: workers get only presigned URLs.
	NoBucketKeys bool
	// WakePrecision is how late a wake-up of a schedule may be without a failure. A shorter
	// lateness limit would end runs that are on time.
	WakePrecision time.Duration
	// AdHoc: the definition is that of a single run, without an id or a schedule.
	AdHoc bool
}

// Validate returns the problems of a definition. With a nil deployment it omits the checks that
// depend on one.
func (d Definition) Validate(deployment *Deployment) []Problem {
	p := &problems{}
	validate(d, deployment, p)
	return p.sorted()
}

// The ranges of fields whose limits are not declared elsewhere.
const (
	maxJitter    = time.Hour
	minDeadline  = 10 * time.Second
	maxArguments = 1000
	maxVariables = 500
	maxImage     = 512
	maxCPUs      = 16
	maxMemoryMB  = 131_072
	memoryStepMB = 256
	maxExitCode  = 255
)

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	regionName   = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)
)

const wantName = "want 1 to 63 lower-case letters, digits and hyphens, the first no hyphen"

func validate(d Definition, deployment *Deployment, p *problems) {
	adHoc := deployment != nil && deployment.AdHoc
	validateIdentity(d, adHoc, p)
	if deployment != nil && deployment.ID != "" && d.ID != deployment.ID {
		p.bad("id", "%q, want %q or no id", limit.Cut(d.ID, nameLimit), deployment.ID)
	}
	validateProgram(d, p)
	if d.Export != nil {
		validateExport(d, p)
	}
	validateInputs(d, adHoc, p)
	if !adHoc {
		validateTemplates(d, p)
	}
	validateSchedule(d, adHoc, p)
	validateAfter(d, adHoc, p)
	validateSensor(d, adHoc, p)
	validateFan(d, adHoc, p)
	validateConstraints(d, p)
	validateActions(d, p)
	validateSettings(d, p)
	validatePolicy(d, deployment, p)
	if deployment == nil {
		return
	}
	if limit.ValidName(d.Pool) && deployment.HasPool != nil && !deployment.HasPool(d.Pool) {
		p.addConflict("pool", "unknown pool %q, want a pool of GET /v1/pools", d.Pool)
	}
	validateWakes(d, deployment.WakePrecision, p)
	if d.PodSpec != nil && (deployment.OnKubernetes == nil || !deployment.OnKubernetes(d.Pool)) {
		p.addConflict("podSpec", "the pool does not run on Kubernetes; leave podSpec out, or name a pool with the runner kubernetes")
	} else if d.PodSpec != nil && deployment.CheckPodSpec != nil {
		for _, f := range deployment.CheckPodSpec(d.PodSpec) {
			p.addConflict(f.Field, "%s", strings.TrimPrefix(f.Message, f.Field+": "))
		}
	}
	if deployment.NoBucketKeys && d.BucketCredentials == spec.BucketVariables {
		p.addConflict("bucketCredentials", "the deployment gives workers presigned URLs alone, want %s or no field", spec.BucketEnvelope)
	}
	if deployment.CheckURL == nil {
		return
	}
	for field, url := range d.urls() {
		if err := deployment.CheckURL(url); err != nil {
			p.addConflict(field, "%v", err)
		}
	}
}

func validateIdentity(d Definition, adHoc bool, p *problems) {
	switch {
	case adHoc && d.ID != "":
		p.bad("id", "%q of a run without a stored job, want no id", d.ID)
	case !adHoc && d.ID == "":
		p.bad("id", "missing id, %s", wantName)
	case !adHoc && !limit.ValidName(d.ID):
		p.bad("id", "malformed id %q, %s", limit.Cut(d.ID, nameLimit), wantName)
	}
	if len(d.Name) > limit.FileName || !limit.Printable(d.Name) {
		p.bad("name", "malformed name, want at most %d bytes without control characters", limit.FileName)
	}
	validateLabels(label.Check(d.Labels), p)
	if d.Pool != "" && !limit.ValidName(d.Pool) {
		p.bad("pool", "malformed pool %q, %s", limit.Cut(d.Pool, nameLimit), wantName)
	}
	if problem := keyProblem(d.ConcurrencyKey); problem != "" {
		p.bad("concurrencyKey", "%s", problem)
	}
}

func validateLabels(found []label.Problem, p *problems) {
	for _, problem := range found {
		p.bad(join("labels", limit.Cut(problem.Key, nameLimit)), "%s", problem.Text)
	}
}

// LabelProblems returns problems of the labels of a run as those of a definition.
func LabelProblems(found []label.Problem) []Problem {
	p := &problems{}
	validateLabels(found, p)
	return p.sorted()
}

func validateProgram(d Definition, p *problems) {
	switch {
	case d.Image == "" && d.Export != nil:
	case d.Image == "":
		p.bad("image", "missing image, want the name of an image, or locally exec: and the path of a program, or an export")
	case len(d.Image) > maxImage || !limit.Printable(d.Image) || strings.ContainsAny(d.Image, " \u00a0"):
		p.bad("image", "malformed image, want at most %d bytes without spaces", maxImage)
	case strings.HasPrefix(d.Image, "exec:") && !path.IsAbs(strings.TrimPrefix(d.Image, "exec:")):
		p.bad("image", "%q, want exec: and the absolute path of a program, such as exec:/bin/echo", limit.Cut(d.Image, nameLimit))
	}
	if len(d.Command) > maxArguments {
		p.bad("command", "%d arguments, want at most %d", len(d.Command), maxArguments)
	}
	for i, argument := range d.Command {
		if strings.Contains(argument, "\x00") {
			p.bad(join("command", strconv.Itoa(i)), "argument with a NUL, want text")
		}
		if len(argument) > maxArgument {
			p.bad(join("command", strconv.Itoa(i)), "argument of %d bytes, want at most %d, which is the limit of Linux", len(argument), maxArgument)
		}
	}
	validateEnv("env", d.Env, p)
	validateSize("command", d.Command, d.Env, p)
	if o := d.Output; o != nil {
		validateOutputPath(o.Path, p)
		if o.FileName != "" && (len(o.FileName) > limit.FileName || !limit.Printable(o.FileName) || strings.ContainsAny(o.FileName, `/\`)) {
			p.bad("output.fileName", "malformed file name %q, want at most %d bytes without / and \\", limit.Cut(o.FileName, nameLimit), limit.FileName)
		}
		if _, _, err := mime.ParseMediaType(o.ContentType); o.ContentType != "" && (err != nil || len(o.ContentType) > limit.FileName || !strings.Contains(o.ContentType, "/")) {
			p.bad("output.contentType", "malformed media type %q, want one such as text/csv", limit.Cut(o.ContentType, nameLimit))
		}
	}
	oneOf(p, "completion", d.Completion, spec.CompletionExit, spec.CompletionCallback)
	validateExitCodes(d, p)
}

// validateOutputPath checks the path of an output. Only the machine knows whether an absolute
// path is below the working directory of the program.
func validateOutputPath(name string, p *problems) {
	clean := path.Clean(name)
	switch {
	case name == "" || len(name) > limit.ObjectKey || !limit.Printable(name) || strings.HasSuffix(name, "/") || clean == "." || clean == "/":
		p.bad("output.path", "malformed path %q, want the path of a file, at most %d bytes", limit.Cut(name, nameLimit), limit.ObjectKey)
	case clean == ".." || strings.HasPrefix(clean, "../") || strings.HasSuffix(clean, "/.."):
		p.addConflict("output.path", "%q leaves the working folder of the program, want a path below it, such as out/report.csv", limit.Cut(name, nameLimit))
	}
}

func validateSecret(field, name string, p *problems) {
	if name != "" && !limit.ValidName(name) {
		p.bad(field, "malformed name %q of a secret, %s", limit.Cut(name, nameLimit), wantName)
	}
}

func validateExitCodes(d Definition, p *problems) {
	if d.ExitCodes == nil {
		return
	}
	if d.Completion == spec.CompletionCallback {
		p.addConflict("exitCodes", "no meaning with completion callback, where the worker reports its result; leave one out")
	}
	seen := map[int]string{}
	for _, list := range []struct {
		name  string
		codes []int
	}{{"success", d.ExitCodes.Success}, {"retry", d.ExitCodes.Retry}, {"fail", d.ExitCodes.Fail}} {
		for i, code := range list.codes {
			at := "exitCodes." + list.name + "." + strconv.Itoa(i)
			if !p.within(at, &code, 0, maxExitCode) {
				continue
			}
			if other, ok := seen[code]; ok {
				p.addConflict(at, "%d is in %s too, want each code once", code, other)
			}
			seen[code] = "exitCodes." + list.name
		}
	}
}

// keyProblem returns the problem of a concurrency key; empty if it is valid or absent.
func keyProblem(key string) string {
	if key == "" || limit.ValidBatchID(key) {
		return ""
	}
	return fmt.Sprintf("malformed key, want 1 to %d letters, digits, '.', '_', ':' and '-'", limit.BatchID)
}

func validateConcurrency(d Definition, p *problems) {
	c := d.Concurrency
	if c == nil {
		return
	}
	if d.ConcurrencyKey == "" {
		p.addConflict("concurrency", "no meaning without concurrencyKey; add it, or leave this out")
	}
	p.within("concurrency.limit", c.Limit, 1, limit.ConcurrentRuns)
	p.within("concurrency.queueLimit", c.QueueLimit, 1, limit.KeyQueue)
	oneOf(p, "concurrency.overflow", c.Overflow, spec.Overflows()...)
	if c.Overflow != "" && c.QueueLimit == nil {
		p.addConflict("concurrency.overflow", "no meaning without concurrency.queueLimit; add it, or leave this out")
	}
}

// CheckOverride returns the problems of an override.
func CheckOverride(o spec.Override) []Problem {
	p := &problems{}
	oneOf(p, "priority", o.Priority, spec.Priorities()...)
	if problem := keyProblem(o.Key); problem != "" {
		p.bad("concurrencyKey", "%s", problem)
	}
	return p.sorted()
}

func validateSettings(d Definition, p *problems) {
	validateConcurrency(d, p)
	oneOf(p, "logs", d.Logs, LogsKeep, LogsDrop)
	oneOf(p, "priority", d.Priority, spec.Priorities()...)
	oneOf(p, "bucketCredentials", d.BucketCredentials, spec.BucketVariables, spec.BucketEnvelope)
	if d.Region != "" && !regionName.MatchString(d.Region) {
		p.bad("region", "malformed region %q, want 1 to 32 lower-case letters, digits and hyphens", limit.Cut(d.Region, nameLimit))
	}
	if d.Resources == nil {
		return
	}
	p.within("resources.cpus", d.Resources.CPUs, 1, maxCPUs)
	if p.within("resources.memoryMB", d.Resources.MemoryMB, memoryStepMB, maxMemoryMB) && *d.Resources.MemoryMB%memoryStepMB != 0 {
		p.bad("resources.memoryMB", "%d is no multiple of %d", *d.Resources.MemoryMB, memoryStepMB)
	}
}

// oneOf checks an optional field with a closed list of values.
func oneOf[T ~string](p *problems, field string, value T, values ...T) {
	if value == "" || slices.Contains(values, value) {
		return
	}
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	p.bad(field, "unknown value %q, want %s", limit.Cut(string(value), nameLimit), strings.Join(names, " or "))
}

// within checks the range of an optional integer. ok is true if it is present and valid.
func (p *problems) within(field string, value *int, least, most int) (ok bool) {
	if value == nil {
		return false
	}
	if *value < least || *value > most {
		p.bad(field, "%s is out of range, want %d to %d", cmp.Or(p.written[field], strconv.Itoa(*value)), least, most)
		return false
	}
	return true
}

// duration checks the range of an optional duration. ok is true if it is present and valid.
func (p *problems) duration(field string, text Duration, least, most time.Duration) (ok bool) {
	if text == "" {
		return false
	}
	value, err := time.ParseDuration(string(text))
	switch {
	case err != nil:
		p.bad(field, "malformed duration %q, %s", limit.Cut(string(text), nameLimit), wantDuration(string(text)))
	case value < least || value > most:
		p.bad(field, "%s is out of range, want %s to %s", text, short(least), short(most))
	default:
		return true
	}
	return false
}

// inDays matches a number of days or weeks, which are not units of a duration.
var inDays = regexp.MustCompile(`^([0-9]{1,4})(d|w)$`)

// wantDuration returns the valid alternative to a malformed duration, for an error.
func wantDuration(text string) string {
	days := inDays.FindStringSubmatch(text)
	if days == nil {
		return "want one such as 90s, 10m or 1h30m"
	}
	hours, _ := strconv.Atoi(days[1])
	if hours *= 24; days[2] == "w" {
		hours *= 7
	}
	return fmt.Sprintf("the largest unit is the hour, want %dh", hours)
}

// short returns the text of a duration without zero units.
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"0s", "0m"} {
		if before, ok := strings.CutSuffix(text, zero); ok && before != "" && !strings.ContainsAny(before[len(before)-1:], "0123456789") {
			text = before
		}
	}
	return text
}

// given reports whether an optional flag is true.
func given(flag *bool) bool { return flag != nil && *flag }
