package stack_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/local/sortie/template"
)

// TestOptionsAreOff checks that the default stack has no optional part. LocalStack has none of
// these services except Lambda's aliases.
func TestOptionsAreOff(t *testing.T) {
	t.Parallel()
	for _, kind := range optionalKinds {
		if n := len(deployed(t).Of(kind)); n != 0 {
			t.Errorf("got %d %s, want 0", n, kind)
		}
		if n := len(everything(t).Of(kind)); n == 0 {
			t.Errorf("with every option: got no %s", kind)
		}
	}
	if deployed(t).Function("canary") != nil || everything(t).Function("canary") == nil {
		t.Error("got a canary by default, or none with the option")
	}
}

var optionalKinds = []string{
	"Lambda::Alias", "Lambda::Version", "CodeDeploy::Application", "CodeDeploy::DeploymentGroup", "StepFunctions::StateMachineVersion",
	"StepFunctions::StateMachineAlias", "WAFv2::WebACL", "WAFv2::WebACLAssociation", "Backup::BackupVault", "Backup::BackupPlan",
	"Backup::BackupSelection", "Budgets::Budget",
}

// TestGradualDeploymentRollsBack checks that every caller invokes an alias, and that each alias
// has a deployment that alarms end.
func TestGradualDeploymentRollsBack(t *testing.T) {
	t.Parallel()
	made := synth(t, map[string]any{"gradual": true})
	groups := made.Of("CodeDeploy::DeploymentGroup")
	aliases := made.Of("Lambda::Alias")
	if len(groups) != len(aliases) || len(aliases) != len(functionsOf(made)) {
		t.Fatalf("got %d deployment groups and %d aliases for %d functions", len(groups), len(aliases), len(functionsOf(made)))
	}
	for _, g := range groups {
		for _, alarm := range []string{"AlarmApiFails", "AlarmStepsFail", "AlarmRelayFails", "AlarmSweepFails"} {
			if !strings.Contains(g.Text("AlarmConfiguration"), `"Ref":"`+alarm+`"`) {
				t.Errorf("%s: got alarms %s, want %s", g.ID, g.Text("AlarmConfiguration"), alarm)
			}
		}
		expect(t, g, "true", "AutoRollbackConfiguration", "Enabled")
		if !strings.Contains(g.Text("AutoRollbackConfiguration", "Events"), "DEPLOYMENT_STOP_ON_ALARM") {
			t.Errorf("%s: got rollback on %s", g.ID, g.Text("AutoRollbackConfiguration", "Events"))
		}
		expect(t, g, "CodeDeployDefault.LambdaCanary10Percent15Minutes", "DeploymentConfigName")
	}
	for _, a := range aliases {
		if !strings.Contains(made.Text, `"UpdatePolicy"`) || a.Text("Name") != "live" {
			t.Errorf("%s: got no update policy, or name %s", a.ID, a.Text("Name"))
		}
	}
	// No caller invokes a function itself.
	for _, m := range made.Of("ApiGateway::Method") {
		if uri := m.Text("Integration", "Uri"); !strings.Contains(uri, "/functions/${Live") {
			t.Errorf("%s: got %s, want an alias", m.ID, uri)
		}
	}
	if definition := named(t, made, "StepFunctions::StateMachine", "Run").Text("DefinitionString"); strings.Count(definition, `"FunctionName": "${Live`) < 8 {
		t.Errorf("got a state machine that invokes functions, want aliases: %.400s", definition)
	}
	for _, r := range made.Of("Events::Rule") {
		if !strings.Contains(r.Text("Targets"), `"Arn":{"Ref":"Live`) {
			t.Errorf("%s: got targets %s, want an alias", r.ID, r.Text("Targets"))
		}
	}
	if f := named(t, made, "Lambda::EventSourceMapping", "Stream").Text("FunctionName"); !strings.HasPrefix(f, "${LiveRelay") {
		t.Errorf("stream: got %s, want an alias", f)
	}
	expect(t, named(t, made, "Lambda::EventInvokeConfig", "SweepInvoke"), "live", "Qualifier")
}

// TestStateMachineVersionIsBehindAnAlias checks that executions start at the alias. Its
// versions remain for executions in flight, which may invoke the functions that they name.
func TestStateMachineVersionIsBehindAnAlias(t *testing.T) {
	t.Parallel()
	made := synth(t, map[string]any{"gradual": true})
	for _, f := range made.Of("Lambda::Function") {
		if machine, ok := f.Variables()["SORTIE_STATE_MACHINE"]; ok && !strings.HasSuffix(machine, ":stateMachine:sortie-dev-run:live") {
			t.Errorf("%s: got %s, want the alias", f.ID, machine)
		}
	}
	alias := made.Of("StepFunctions::StateMachineAlias")[0]
	expect(t, alias, "live", "Name")
	expect(t, alias, "CANARY", "DeploymentPreference", "Type")
	if n := len(alias.At("DeploymentPreference", "Alarms").([]any)); n < 4 {
		t.Errorf("got %d alarms, want 4", n)
	}
	if v := made.Of("StepFunctions::StateMachineVersion")[0]; v.UpdateReplacePolicy != "Retain" {
		t.Errorf("got policy %q for the version before, want Retain", v.UpdateReplacePolicy)
	}
	for _, s := range statements(made) {
		if !strings.HasPrefix(s.where, "RoleRun") || !slices.Contains(s.actions, "lambda:InvokeFunction") {
			continue
		}
		for _, step := range []string{"Launch", "Terminate"} {
			for _, prefix := range []string{"${" + step, "${Live" + step} {
				if !slices.ContainsFunc(s.resources, func(on string) bool { return strings.HasPrefix(on, prefix) }) {
					t.Errorf("got resources %v, want %s", s.resources, prefix)
				}
			}
		}
	}
}

func TestFirewallCountsClientsOnly(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		settings map[string]any
		rules    []string
	}{
		"both":           {map[string]any{"firewall": true, "clientLimit": 500}, []string{"reputation", "clients"}},
		"reputation":     {map[string]any{"firewall": true}, []string{"reputation"}},
		"limit":          {map[string]any{"clientLimit": 500}, []string{"clients"}},
		"none of either": {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := synth(t, row.settings)
			var rules []string
			for _, acl := range made.Of("WAFv2::WebACL") {
				for _, rule := range acl.At("Rules").([]any) {
					r := &template.Resource{Properties: rule.(map[string]any)}
					rules = append(rules, r.Text("Name"))
					limit := []string{"Statement", "RateBasedStatement"}
					if r.Text("Name") != "clients" {
						continue
					}
					expect(t, r, "500", append(limit, "Limit")...)
					expect(t, r, "CUSTOM_KEYS", append(limit, "AggregateKeyType")...)
					expect(t, r, "429", "Action", "Block", "CustomResponse", "ResponseCode")
					checkScope(t, r.Text(append(limit, "ScopeDownStatement", "NotStatement", "Statement", "AndStatement")...))
					if body := acl.Text("CustomResponseBodies", "throttled", "Content"); !strings.Contains(body, `"code":"THROTTLED"`) {
						t.Errorf("got answer %s, want a problem", body)
					}
				}
				association := made.Of("WAFv2::WebACLAssociation")[0].Text("ResourceArn")
				if !strings.Contains(association, "::/restapis/${Api") || !strings.Contains(association, "/stages/") {
					t.Errorf("got association with %s, want the API's stage", association)
				}
			}
			if !slices.Equal(rules, row.rules) {
				t.Errorf("got rules %v, want %v", rules, row.rules)
			}
		})
	}
}

// checkScope checks which requests the limit for clients does not count: those that workers
// post.
func checkScope(t *testing.T, scope string) {
	t.Helper()
	var both struct {
		Statements []struct {
			RegexMatchStatement struct{ RegexString string }
			ByteMatchStatement  struct{ SearchString, PositionalConstraint string }
		}
	}
	if err := json.Unmarshal([]byte(scope), &both); err != nil || len(both.Statements) != 2 || both.Statements[1].ByteMatchStatement.SearchString != "POST" {
		t.Fatalf("got scope %s, %v, want the paths of workers and POST", scope, err)
	}
	paths := regexp.MustCompile(both.Statements[0].RegexMatchStatement.RegexString)
	for path, want := range map[string]bool{
		"/prod/callback/t": true, "/callback/t": true, "/v1/tasks/t/started": true, "/v1/tasks/t/heartbeat": true, "/prod/v1/tasks/t/logs": true,
		"/v1/tasks/t/completed": true, "/v1/tasks/t/cancel": false, "/v1/tasks/t": false, "/v1/tasks/t/logs/x": false, "/export/mods": false,
	} {
		if got := paths.MatchString(path); got != want {
			t.Errorf("%s: got %t, want %t by %s", path, got, want, paths)
		}
	}
	if n := len(paths.String()); n > 512 {
		t.Errorf("got a pattern of %d characters, want at most 512, the limit of WAF", n)
	}
}

func TestBackupCopiesTheTable(t *testing.T) {
	t.Parallel()
	made := everything(t)
	if selection := made.Of("Backup::BackupSelection")[0].Text("BackupSelection", "Resources"); !strings.Contains(selection, `"Table`) {
		t.Errorf("got %s, want the table", selection)
	}
	if vault := made.Of("Backup::BackupVault")[0]; vault.DeletionPolicy != "RetainExceptOnCreate" {
		t.Errorf("got policy %q for the vault, want RetainExceptOnCreate", vault.DeletionPolicy)
	}
	if rules := made.Of("Backup::BackupPlan")[0].Text("BackupPlan", "BackupPlanRule"); !strings.Contains(rules, `"DeleteAfterDays":35`) {
		t.Errorf("got rules %s", rules)
	}
}

func TestBudgetNotifiesTheAlarmMail(t *testing.T) {
	t.Parallel()
	budget := everything(t).Of("Budgets::Budget")[0]
	expect(t, budget, "50", "Budget", "BudgetLimit", "Amount")
	expect(t, budget, `["user:stage$dev"]`, "Budget", "CostFilters", "TagKeyValue")
	if mails := budget.Text("NotificationsWithSubscribers"); strings.Count(mails, "watch@example.org") != 2 || !strings.Contains(mails, "FORECASTED") {
		t.Errorf("got notifications %s", mails)
	}
}

func TestCanaryHasItsScheduleAndAlarm(t *testing.T) {
	t.Parallel()
	made := everything(t)
	expect(t, named(t, made, "Events::Rule", "EveryQuarter"), "rate(15 minutes)", "ScheduleExpression")
	expect(t, named(t, made, "Lambda::EventInvokeConfig", "CanaryInvoke"), "0", "MaximumRetryAttempts")
	expect(t, named(t, made, "CloudWatch::Alarm", "AlarmCanaryFails"), "Errors", "MetricName")
	named(t, made, "SecretsManager::Secret", "SecretCanary")
	for _, s := range deployed(t).Of("SecretsManager::Secret") {
		if strings.Contains(s.ID, "Canary") {
			t.Error("got a secret for a canary that the stage does not have")
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]map[string]any{
		"budget: requires alarmEmail": {"budget": 5}, "clientLimit: 9 is out of range": {"clientLimit": 9}, "canary: ": {"canary": "x"},
		"gradual: ": {"gradual": "sometimes"}, "budget: -1": {"budget": -1},
	} {
		if _, err := stack.ReadSettings(given(settings)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: got %v, want %q", settings, err, name)
		}
	}
}
