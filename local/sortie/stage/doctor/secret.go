package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"github.com/sortie-dev/sortie/local/sortie/template"
	"github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/domain/access"
)

// secrets checks that each secret of the stage has a value of the right format.
func (e *exam) secrets(ctx context.Context) []Finding {
	var found []Finding
	for _, s := range e.plan.Secrets {
		found = append(found, e.secret(ctx, s))
	}
	return found
}

func (e *exam) secret(ctx context.Context, s template.Secret) Finding {
	check, name := "secret "+s.Kind, secrets.Name(e.Stage, s.Kind)
	if f := e.unreached(check); f != nil {
		return f[0]
	}
	then := e.deploy()
	if !s.Filled {
		then += ", then " + e.fill(s)
	}
	switch {
	case e.deployedErr != nil: // the secret may still be readable
	case !e.serves():
		return missing(check, "the stage is not deployed", then)
	case !e.present.Has(s.Kind):
		return missing(check, "the deployed stage does not have it yet", then)
	}
	answer, err := secretsmanager.NewFromConfig(e.AWS).GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &name})
	switch {
	case code(err) == "ResourceNotFoundException":
		return missing(check, name+" has no value", e.fill(s))
	case code(err) == "InvalidRequestException":
		return wrong(check, name+" is scheduled for deletion", "aws secretsmanager restore-secret --secret-id "+name+" --region "+e.AWS.Region)
	case err != nil:
		return e.unmade(check, "secretsmanager:GetSecretValue", err)
	}
	text := []byte(aws.ToString(answer.SecretString))
	document, err := secrets.Parse(s.Kind, text)
	if err == nil {
		err = e.usable(document, text)
	}
	if err != nil {
		return wrong(check, name+": "+strings.ReplaceAll(err.Error(), "\n", "; "), e.fill(s))
	}
	if clients, is := document.(secrets.Clients); is {
		if f := e.clients(check, clients); f.Status != OK {
			return f
		}
	}
	e.documents[s.Kind] = document
	return ok(check, "%s has %s", name, strings.Join(slices.Sorted(maps.Keys(document.Fingerprints())), ", "))
}

// fill returns the command that writes a secret.
func (e *exam) fill(s template.Secret) string {
	switch {
	case s.Filled:
		return e.deploy() + ", which writes it"
	case s.Kind == "clients":
		return "bin/sortie tokens add ci --stage " + e.Stage
	case s.Kind == "fly":
		return e.flyToken("personal")
	case s.Kind == "canary":
		return "bin/sortie tokens add canary --stage " + e.Stage + " --json | jq '{token}' | " + e.put("canary")
	case s.Kind == "kubernetes":
		return "jq -n --rawfile kubeconfig FILE '{$kubeconfig}' | " + e.put("kubernetes") + ", with a kubeconfig as FILE"
	case s.Kind == "outputs":
		return e.put("outputs") + ` <outputs.json, a file with {"accountId": "…", "accessKeyId": "…", "secretAccessKey": "…", "workerAccessKeyId": "…", "workerSecretAccessKey": "…"}`
	case s.Kind == "traces":
		return e.put("traces") + ` <traces.json, a file with {"headers": {"NAME": "VALUE"}}`
	}
	return e.put(s.Kind)
}

// flyToken returns the command that creates a token of an organisation and stores it.
func (e *exam) flyToken(organisation string) string {
	return "fly tokens create org " + organisation + " --json | " + e.put("fly")
}

// example matches placeholders in documents.
var example = regexp.MustCompile(`(?i)^(<.*>|\$\{?\w+\}?|\.{3,}|x{3,}|\*{3,}|(your|my|the|some|a)[-_ ].*|change[-_ ]?me|todo|tbd|token|secret|value|example|placeholder|replace[-_ ]?me|dummy|.*\.\.\.)$`)

// usable returns an error that names the fields with placeholders, or another fault that the
// document's format does not reveal.
func (e *exam) usable(document secrets.Document, text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return fmt.Errorf("no JSON")
	}
	if fields := examples("", value); len(fields) > 0 {
		return fmt.Errorf("%s: a placeholder, want the real value", strings.Join(fields, ", "))
	}
	switch d := document.(type) {
	case secrets.Outputs:
		return e.usableOutputs(d)
	case secrets.Kubernetes:
		if _, err := kubernetes.ConfigOf(d.Kubeconfig, d.EKS != ""); err != nil {
			return fmt.Errorf("kubeconfig: %w", err)
		}
	default:
	}
	return nil
}

// accountID matches the account ids of Cloudflare.
var accountID = regexp.MustCompile(`^[0-9a-f]{32}$`)

func (e *exam) usableOutputs(o secrets.Outputs) error {
	switch {
	case o.AccountID == "" && o.Endpoint == "" && (e.plan.Buckets == nil || e.plan.Buckets.Endpoint == ""):
		return fmt.Errorf("accountId is missing, want that of Cloudflare, or an endpoint")
	case o.Endpoint == "" && (e.plan.Buckets == nil || e.plan.Buckets.Endpoint == "") && !accountID.MatchString(o.AccountID):
		return fmt.Errorf("accountId is malformed, want the 32 hexadecimal digits of Cloudflare")
	case o.AccessKeyID == o.WorkerAccessKeyID:
		return fmt.Errorf("workerAccessKeyId is accessKeyId, want a key that reaches the uploads bucket alone")
	}
	return nil
}

// examples returns the paths of texts that look like placeholders.
func examples(path string, value any) []string {
	var found []string
	switch v := value.(type) {
	case string:
		if text := strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(v, "FlyV1"), "Bearer")); example.MatchString(text) || strings.Contains(text, "…") {
			return []string{path}
		}
	case []any:
		for i, each := range v {
			found = append(found, examples(fmt.Sprintf("%s[%d]", path, i), each)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name == "name" || name == "tenant" || name == "project" || name == "scopes" || name == "kubeconfig" { // people choose these values
				continue
			}
			found = append(found, examples(strings.TrimPrefix(path+"."+name, "."), v[name])...)
		}
	}
	return found
}

// clients checks that at least one client can call the API.
func (e *exam) clients(check string, c secrets.Clients) Finding {
	add := e.fill(template.Secret{Kind: "clients"})
	all := c.All()
	if len(all) == 0 {
		return missing(check, "the stage has no client token", add)
	}
	if !slices.ContainsFunc(all, func(t access.Token) bool { return !t.Expired(e.Clock.Now()) }) {
		return wrong(check, "all client tokens have expired", add)
	}
	return ok(check, "")
}

// canary checks that the canary's token belongs to a client that may export.
func (e *exam) canary(context.Context) []Finding {
	const check = "canary"
	if !e.plan.Has("canary") {
		return nil
	}
	canary, is := e.documents["canary"].(secrets.Canary)
	clients, are := e.documents["clients"].(secrets.Clients)
	if !is || !are {
		return []Finding{unknown(check, "not checked: it needs the secrets canary and clients", "do what their lines say")}
	}
	again := "bin/sortie tokens revoke canary --stage " + e.Stage + "; " + e.fill(template.Secret{Kind: "canary"})
	held, known := access.Find(clients.All(), canary.Token)
	switch {
	case !known:
		return []Finding{wrong(check, "its token is not one of the stage's client tokens", again)}
	case held.Expired(e.Clock.Now()):
		return []Finding{wrong(check, "its token has expired", again)}
	}
	for _, scope := range []access.Scope{access.RunsRead, access.RunsWrite} {
		if !slices.Contains(held.Scopes, scope) {
			return []Finding{wrong(check, "its token lacks the scope "+string(scope), again)}
		}
	}
	return []Finding{ok(check, "its token is that of the client %s", held.Name)}
}
