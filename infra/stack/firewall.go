package stack

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// clientWindow is the time over which clientLimit counts, in seconds.
const clientWindow = 300

// workerPaths returns a pattern for the paths to which workers post. The limit for clients does
// not count them. The pattern matches the end of a path, because a path starts with the stage
// if the API has no domain.
func workerPaths() string {
	var paths []string
	for _, r := range routes() {
		if r.Access == httpkit.ForWorkers {
			paths = append(paths, parameter.ReplaceAllString(r.Pattern, "[^/]+"))
		}
	}
	return "(" + strings.Join(paths, "|") + ")$"
}

// parameter matches a parameter of a path.
var parameter = regexp.MustCompile(`\{[^}]*\}`)

// addFirewall adds AWS WAF in front of the API, if the setting firewall or clientLimit is set.
// It does not use AWS's rules about the content of requests, because they refuse bodies above 8
// KB.
func (b *builder) addFirewall(api awsapigateway.RestApi) {
	var rules []any
	add := func(name string, rule map[string]any) {
		rule["Name"], rule["Priority"], rule["VisibilityConfig"] = name, len(rules), b.visibility(name)
		rules = append(rules, rule)
	}
	if b.settings.Firewall {
		add("reputation", map[string]any{
			"OverrideAction": map[string]any{"None": map[string]any{}},
			"Statement": map[string]any{"ManagedRuleGroupStatement": map[string]any{
				"VendorName": "AWS", "Name": "AWSManagedRulesAmazonIpReputationList",
			}},
		})
	}
	bodies := map[string]any{}
	if b.settings.ClientLimit > 0 {
		p := httpkit.ProblemOf(fault.New(fault.Throttled, "more than %d requests in five minutes", b.settings.ClientLimit))
		body, err := json.Marshal(p.Body)
		if err != nil { // a struct of strings and numbers
			panic(err)
		}
		bodies["throttled"] = map[string]any{"ContentType": "APPLICATION_JSON", "Content": string(body)}
		plain := []any{map[string]any{"Priority": 0, "Type": "NONE"}}
		add("clients", map[string]any{
			"Action": map[string]any{"Block": map[string]any{"CustomResponse": map[string]any{
				"ResponseCode": http.StatusTooManyRequests, "CustomResponseBodyKey": "throttled",
				"ResponseHeaders": []any{map[string]any{"Name": "Retry-After", "Value": strconv.Itoa(clientWindow)}},
			}}},
			"Statement": map[string]any{"RateBasedStatement": map[string]any{
				"Limit": b.settings.ClientLimit, "EvaluationWindowSec": clientWindow, "AggregateKeyType": "CUSTOM_KEYS",
				"CustomKeys": []any{map[string]any{"Header": map[string]any{"Name": "authorization", "TextTransformations": plain}}},
				"ScopeDownStatement": map[string]any{"NotStatement": map[string]any{"Statement": map[string]any{"AndStatement": map[string]any{"Statements": []any{
					map[string]any{"RegexMatchStatement": map[string]any{
						"RegexString": workerPaths(), "FieldToMatch": map[string]any{"UriPath": map[string]any{}}, "TextTransformations": plain,
					}},
					map[string]any{"ByteMatchStatement": map[string]any{
						"SearchString": http.MethodPost, "PositionalConstraint": "EXACTLY", "FieldToMatch": map[string]any{"Method": map[string]any{}}, "TextTransformations": plain,
					}},
				}}}}},
			}},
		})
	}
	if len(rules) == 0 {
		return
	}
	properties := map[string]any{
		"Name": b.name("firewall"), "Scope": "REGIONAL", "DefaultAction": map[string]any{"Allow": map[string]any{}},
		"VisibilityConfig": b.visibility("firewall"), "Rules": rules, "Tags": b.tags(),
	}
	if len(bodies) > 0 {
		properties["CustomResponseBodies"] = bodies
	}
	acl := b.resource("Firewall", "WAFv2::WebACL", properties)
	b.resource("FirewallOfApi", "WAFv2::WebACLAssociation", map[string]any{
		"ResourceArn": *api.DeploymentStage().StageArn(), "WebACLArn": *acl.GetAtt(jsii.String("Arn"), awscdk.ResolutionTypeHint_STRING).ToString(),
	})
}

// visibility returns the metrics configuration of a rule. The metrics are free. No request is
// sampled.
func (b *builder) visibility(name string) map[string]any {
	return map[string]any{"CloudWatchMetricsEnabled": true, "SampledRequestsEnabled": false, "MetricName": b.name(name)}
}

// resource adds a resource with the properties.
func (b *builder) resource(id, kind string, properties map[string]any) awscdk.CfnResource {
	return awscdk.NewCfnResource(b.stack, jsii.String(id), &awscdk.CfnResourceProps{Type: jsii.String("AWS::" + kind), Properties: &properties})
}

// tags returns the tags of the stack, for resources that the CDK does not tag.
func (b *builder) tags() []any {
	return []any{
		map[string]any{"Key": "project", "Value": "sortie"}, map[string]any{"Key": "stage", "Value": b.settings.Stage},
	}
}
