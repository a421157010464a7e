package command_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/doctortest"
	"github.com/sortie-dev/sortie/local/sortie/stage/doctor"
)

func TestDoctorFindsNothingToDo(t *testing.T) {
	t.Parallel()
	w := doctortest.New(t)
	got := w.Run("prod")
	if lines := strings.Split(strings.TrimSpace(got.Stdout), "\n"); got.Code != 0 || got.Stderr != "" || len(lines) != 22 {
		t.Errorf("got %d, %d lines and\n%s%s, want 0 and 22 lines", got.Code, len(lines), got.Stdout, got.Stderr)
	}
	if regions := slices.Collect(maps.Keys(w.Cloud.Regions)); !slices.Equal(regions, []string{"eu-west-1"}) {
		t.Errorf("got calls in %v, want the region of the settings alone", regions)
	}
}

// TestDoctorChecksWhatTheStageUses checks ready stages that use fewer features.
func TestDoctorChecksWhatTheStageUses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reduce func(*doctortest.World)
		absent []string
	}{
		"no exports": {func(w *doctortest.World) {
			w.Prod.Secrets, w.Prod.FlyApps, w.Prod.NoOutputs = []string{"clients", "kubernetes"}, nil, true
			w.Cloud.Secrets["sortie/prod/kubernetes"] = `{"kubeconfig": "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: https://c.example.org}}]\nusers: [{name: u, user: {token: s3cret}}]\n"}`
		}, []string{"fly runs-one", "bucket uploads", "key workers", "canary", "secret outputs", "secret fly"}},
		"buckets of the stack": {func(w *doctortest.World) {
			w.Prod.Own, w.Prod.Endpoint = true, w.Outputs["endpoint"].(string)
			delete(w.Outputs, "endpoint")
			clear(w.Lifecycles)
		}, []string{"lifecycle uploads"}},
		"no domain, mail and canary": {func(w *doctortest.World) {
			w.Prod.Domain, w.Prod.Certificate, w.Prod.Mail, w.Prod.Secrets = "", "", "", []string{"clients", "fly", "outputs"}
		}, []string{"mail", "certificate", "domain", "canary", "secret traces"}},
		"another template than the deployed one": {func(w *doctortest.World) {
			w.NoAssembly = true
		}, nil},
		"an alias in the place of a CNAME": {func(w *doctortest.World) {
			clear(w.CNAMEs)
			w.Hosts["sortie.example.org"] = []string{"192.0.2.1"}
		}, nil},
		"a certificate for all names": {func(w *doctortest.World) {
			w.Cloud.Certificates[doctortest.Certificate]["SubjectAlternativeNames"] = []string{"*.example.org"}
		}, nil},
		"a high rate": {func(w *doctortest.World) { w.Prod.Rate = 9000 }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := doctortest.New(t)
			row.reduce(w)
			got := w.Run("prod", "--json")
			if got.Code != 0 {
				t.Errorf("got %d and\n%s%s, want 0", got.Code, got.Stdout, got.Stderr)
			}
			found := doctortest.Findings(t, got.Stdout)
			for _, check := range row.absent {
				if found[check] != nil {
					t.Errorf("got %v, want no check of what the stage does not use", found[check])
				}
			}
		})
	}
}

func TestDoctorPrintsJSON(t *testing.T) {
	t.Parallel()
	w := doctortest.New(t)
	w.Cloud.Bootstrap = ""
	got := w.Run("prod", "--json", "--skip", "secret,fly")
	var printed struct {
		Stage  string
		OK     bool
		Checks []doctor.Finding
	}
	if err := json.Unmarshal([]byte(got.Stdout), &printed); err != nil || got.Code != 1 || printed.Stage != "prod" || printed.OK {
		t.Fatalf("got %+v, %v", got, err)
	}
	for _, f := range printed.Checks {
		if strings.HasPrefix(f.Check, "secret") || strings.HasPrefix(f.Check, "fly") {
			t.Errorf("got %v, want it skipped", f)
		}
		if f.Check == "bootstrap" && (f.Status != doctor.Missing || f.ToDo != "infra/.cdk/node_modules/.bin/cdk bootstrap aws://111122223333/eu-west-1") {
			t.Errorf("got %+v, want the command alone", f)
		}
	}
}

func TestDoctorTakesTheStageAsAFlag(t *testing.T) {
	t.Parallel()
	if got := doctortest.New(t).Run("--stage", "prod"); got.Code != 0 {
		t.Errorf("got %+v, want 0", got)
	}
}

func TestDoctorRefusesAWrongCommandLine(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                      "missing STAGE",
		"Prod!":                 "malformed name",
		"prod dev":              "unexpected argument",
		"prod --skip lifecycel": "did you mean lifecycle?",
		"prod --stage prod":     "unexpected argument",
	} {
		if got := doctortest.New(t).Run(strings.Fields(args)...); got.Code != 2 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%q: got %+v, want 2 and %q", args, got, want)
		}
	}
}
