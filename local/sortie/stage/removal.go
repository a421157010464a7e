package stage

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/sortie/template"
)

// Removal is a resource or value that a deployment would remove.
type Removal struct {
	// Word is the word that permits the removal.
	Word string
	// What describes the removal.
	What string
}

// lasting is a resource type that a deployment must not remove without permission.
type lasting struct {
	word, kind string
	// identity are the properties whose change replaces the resource or makes it another one,
	// such as the address of an alarm's mail.
	identity []string
}

// lastings lists the resources that hold data or keys, have names that others use, or notify
// people.
var lastings = []lasting{
	{"table", "DynamoDB::Table", []string{"TableName", "KeySchema"}},
	{"outputs", "S3::Bucket", []string{"BucketName"}},
	{"outputsKeys", "IAM::User", []string{"UserName"}},
	{"outputsKeys", "IAM::AccessKey", []string{"Serial", "UserName"}},
	{"signingKeys", "KMS::Key", []string{"KeySpec", "KeyUsage"}},
	{"secrets", "SecretsManager::Secret", []string{"Name"}},
	{"domain", "ApiGateway::DomainName", []string{"DomainName"}},
	{"domain", "ApiGateway::BasePathMapping", []string{"BasePath", "DomainName"}},
	{"address", "ApiGateway::RestApi", []string{"EndpointConfiguration"}},
	{"address", "ApiGateway::Stage", []string{"StageName"}},
	{"gradual", "Lambda::Alias", []string{"Name"}},
	{"gradual", "StepFunctions::StateMachineAlias", []string{"Name"}},
	{"runs", "StepFunctions::StateMachine", []string{"StateMachineName", "StateMachineType"}},
	{"events", "Events::EventBus", []string{"Name"}},
	{"deadLetters", "SQS::Queue", []string{"QueueName"}},
	{"alarmEmail", "SNS::Subscription", []string{"Endpoint", "Protocol", "TopicArn"}},
	{"alarms", "SNS::Topic", []string{"TopicName"}},
	{"alarms", "CloudWatch::Alarm", []string{"AlarmName"}},
	{"budget", "Budgets::Budget", []string{"NotificationsWithSubscribers"}},
	{"backup", "Backup::BackupVault", []string{"BackupVaultName"}},
	{"backup", "Backup::BackupPlan", nil},
	{"backup", "Backup::BackupSelection", nil}, // it follows the table
	{"firewall", "WAFv2::WebACL", []string{"Scope"}},
	{"firewall", "WAFv2::WebACLAssociation", []string{"ResourceArn", "WebACLArn"}},
	{"schedules", "Events::Rule", nil},
	{"logs", "Logs::LogGroup", []string{"LogGroupName"}},
}

// references are variables of functions that name something outside of the stack. A value that
// disappears from the variable's list counts as removed.
var references = []struct{ word, variable string }{
	{"tableStream", "SORTIE_TABLE"},
	{"outputs", "SORTIE_UPLOADS_BUCKET"},
	{"outputs", "SORTIE_ACCEPTED_BUCKET"},
	{"outputs", "SORTIE_OUTPUTS_ENDPOINT"},
	{"flyApps", "SORTIE_FLY_APPS"},
	{"flyApps", "SORTIE_FLY_URL"},
	{"kubernetes", "SORTIE_KUBERNETES_CLUSTER"},
	{"kubernetes", "SORTIE_KUBERNETES_NAMESPACES"},
	{"origins", "SORTIE_ORIGINS"},
}

// Removals lists, sorted, what a deployment of after over before would remove. It ignores other
// changes of function settings.
func Removals(before, after template.Template) []Removal {
	var found []Removal
	add := func(word, format string, args ...any) {
		r := Removal{word, fmt.Sprintf(format, args...)}
		if !slices.Contains(found, r) {
			found = append(found, r)
		}
	}
	for _, l := range lastings {
		for _, old := range before.Of(l.kind) {
			name := old.Type + " " + old.ID
			now := after.Resources[old.ID]
			if now == nil || now.Type != old.Type {
				add(l.word, "%s is removed", name)
				continue
			}
			for _, property := range l.identity {
				if was, is := old.Text(property), now.Text(property); was != is {
					add(l.word, "%s is replaced: %s was %s, is %s", name, property, shown(was), shown(is))
				}
			}
		}
	}
	for id, old := range before.Resources {
		if now := after.Resources[id]; now != nil {
			protections(old, now, add)
		}
	}
	for _, r := range references {
		for _, f := range before.Of("Lambda::Function") {
			if now := after.Resources[f.ID]; now != nil {
				for _, value := range lost(f.Variables()[r.variable], now.Variables()[r.variable]) {
					add(r.word, "%s no longer has %s", r.variable, value)
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b Removal) int {
		return slices.Compare([]string{a.Word, a.What}, []string{b.Word, b.What})
	})
	return found
}

// protections adds the protections that end for a resource.
func protections(old, now *template.Resource, add func(word, format string, args ...any)) {
	if old.Retained() && !now.Retained() {
		add("retain", "%s %s is deleted with the stack", old.Type, old.ID)
	}
	for _, path := range [][]string{
		{"DeletionProtectionEnabled"},
		{"PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"},
		{"PublicAccessBlockConfiguration", "BlockPublicPolicy"},
	} {
		if old.Text(path...) == "true" && now.Text(path...) != "true" {
			add("retain", "%s %s no longer has %s", old.Type, old.ID, path[len(path)-1])
		}
	}
	if old.Text("VersioningConfiguration", "Status") == "Enabled" && now.Text("VersioningConfiguration", "Status") != "Enabled" {
		add("retain", "%s %s no longer has versions", old.Type, old.ID)
	}
	if old.Text("DisableExecuteApiEndpoint") != "true" && now.Text("DisableExecuteApiEndpoint") == "true" {
		add("address", "%s no longer answers at API Gateway's host name, which running workers call", old.ID)
	}
	was, err := strconv.Atoi(old.Text("RetentionInDays"))
	if is, err2 := strconv.Atoi(now.Text("RetentionInDays")); err == nil && err2 == nil && is < was {
		add("logs", "%s %s is kept for %d days, was %d", old.Type, old.ID, is, was)
	}
}

// lost returns the elements of a comma-separated list that another list lacks. It ignores
// references, because those belong to the stack and have a resource.
func lost(before, after string) []string {
	has := strings.Split(after, ",")
	var gone []string
	for value := range strings.SplitSeq(before, ",") {
		if value != "" && !strings.Contains(value, "${") && !slices.Contains(has, value) {
			gone = append(gone, value)
		}
	}
	return gone
}

func shown(value string) string {
	if value == "" {
		return "absent"
	}
	return value
}

// Words lists the words of all removals, sorted.
func Words() []string {
	words := map[string]bool{"retain": true}
	for _, l := range lastings {
		words[l.word] = true
	}
	for _, r := range references {
		words[r.word] = true
	}
	return slices.Sorted(maps.Keys(words))
}

// Check returns an error that lists the removals without permission. allowed has the permitted
// Words.
func Check(removals []Removal, allowed []string) error {
	var refused, words []string
	for _, r := range removals {
		if slices.Contains(allowed, r.Word) {
			continue
		}
		refused = append(refused, "  "+r.Word+": "+r.What)
		if !slices.Contains(words, r.Word) {
			words = append(words, r.Word)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return fmt.Errorf("the deployment would take away:\n%s\nTo permit it, deploy with ALLOW_REMOVAL=%s", strings.Join(refused, "\n"), strings.Join(words, ","))
}
