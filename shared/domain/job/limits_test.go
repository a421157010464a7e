package job_test

import (
	"testing"

	"github.com/sortie-dev/sortie/shared/domain/job"
)

// TestLimitsAreRefusedWithoutADeployment parses limits that no deployment accepts, with one and
// without. Both must report the same fields.
func TestLimitsAreRefusedWithoutADeployment(t *testing.T) {
	t.Parallel()
	for document, field := range map[string]string{
		"constraints: {maxAllowedRunTime: 2s}":                                  "constraints.maxAllowedRunTime",
		"constraints: {maxAllowedRunTime: 337h}":                                "constraints.maxAllowedRunTime",
		"constraints: {maxAllowedRunTime: 3500ms}":                              "constraints.maxAllowedRunTime",
		"constraints: {maxExpectedRunTime: 1m}\npolicy: {timeLimitSeconds: 60}": "constraints.maxExpectedRunTime",
		"policy: {timeLimitSeconds: 2}":                                         "policy.timeLimitSeconds",
		"policy: {startTimeoutSeconds: 7201}":                                   "policy.startTimeoutSeconds",
		"policy: {heartbeatIntervalSeconds: 0}":                                 "policy.heartbeatIntervalSeconds",
		"policy: {heartbeatTimeoutSeconds: 1}":                                  "policy.heartbeatTimeoutSeconds",
		"policy: {heartbeatIntervalSeconds: 30, heartbeatTimeoutSeconds: 59}":   "policy.heartbeatTimeoutSeconds",
		"policy: {timeLimitSeconds: 60, heartbeatTimeoutSeconds: 60}":           "policy.heartbeatTimeoutSeconds",
		"policy: {cancelGraceSeconds: 301}":                                     "policy.cancelGraceSeconds",
		"retryConfig: {initialDelay: 1500ms}":                                   "retryConfig.initialDelay",
		"retryConfig: {initialDelay: 10m, maxDelay: 1m}":                        "retryConfig.maxDelay",
		"retryConfig: {backoffMultiplier: 11}":                                  "retryConfig.backoffMultiplier",
		"deadline: 2s":                                                          "deadline",
		"deadline: 3500ms":                                                      "deadline",
		"retention: {outputs: 8761h}":                                           "retention.outputs",
		"retention: {outputs: 48h, records: 24h}":                               "retention.records",
		"retention: {logs: 48h, records: 24h, newest: 3}":                       "retention.records",
		"constraints: {maxConcurrentRuns: 1}\npolicy: {cancelGraceSeconds: 120}\nactions: {onConstraintViolation: {type: kill_old, parameters: {limit: 2m}}}": "actions.onConstraintViolation.parameters.limit",
	} {
		for name, on := range map[string]*job.Deployment{"deployment": deployment(), "no deployment": nil} {
			_, problems := job.Parse([]byte("id: a\nimage: b\n"+document+"\n"), on)
			if len(problems) != 1 || problems[0].Field != field {
				t.Errorf("%s, %s: got %v, want one problem of %s", document, name, problems, field)
			}
		}
	}
	for _, document := range []string{
		"policy: {heartbeatTimeoutSeconds: 7200}", "constraints: {maxAllowedRunTime: 3s}", "constraints: {maxExpectedRunTime: 2h}", "retryConfig: {maxDelay: 1s}",
		"retention: {records: 1s}", "policy: {timeLimitSeconds: 3}", "policy: {heartbeatIntervalSeconds: 3600}", "retention: {outputs: 8760h, logs: 8760h}",
	} {
		if _, problems := job.Parse([]byte("id: a\nimage: b\n"+document+"\n"), nil); len(problems) > 0 {
			t.Errorf("%s: got %v, want a definition that some deployment accepts", document, problems)
		}
	}
}
