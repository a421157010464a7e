package command_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/doctortest"
	"github.com/sortie-dev/sortie/shared/domain/access"
)

// fault injects one fault into a stage. lines are the lines that the doctor prints about it.
type fault struct {
	name   string
	inject func(*doctortest.World)
	lines  []string
}

const (
	putOutputs = "bin/sortie secrets put outputs --stage prod <outputs.json, "
	flyToken   = "fly tokens create org local --json | bin/sortie secrets put fly --stage prod"
	anotherKey = "bin/sortie tokens revoke canary --stage prod; bin/sortie tokens add canary --stage prod --json | jq '{token}' | bin/sortie secrets put canary --stage prod"
	subscribe  = "aws sns subscribe --topic-arn arn:aws:sns:eu-west-1:111122223333:sortie-prod-alarms --protocol email --notification-endpoint ops@example.org --region eu-west-1"
	ofStack    = " --stack-name sortie-prod --region eu-west-1"
	requested  = "aws acm request-certificate --domain-name sortie.example.org --validation-method DNS --region eu-west-1, then set stages.prod.certificate to its ARN"
	recorded   = "add the DNS record sortie.example.org. CNAME d-one.execute-api.eu-west-1.amazonaws.com."
)

// withCanary returns a document with two clients, one of which is the canary, with a change.
func withCanary(change func(*access.Token)) string {
	canary := doctortest.Client("canary", doctortest.CanaryToken)
	change(&canary)
	return doctortest.Clients(doctortest.Client("ci", doctortest.ClientToken), canary)
}

// accountFaults are faults that the doctor finds before the stack.
var accountFaults = []fault{
	{"no settings", func(w *doctortest.World) { w.Entry = nil; w.NoAssembly = true; w.Cloud.Status = "" }, []string{
		`missing  settings            stages.prod is not in infra/cdk.json. To do: add "prod": {"region": "…"} to context.stages in infra/cdk.json, then make synth STAGE=prod, which names what else is needed`,
	}},
	{"no template", func(w *doctortest.World) { w.NoAssembly = true; w.Cloud.Status = "" }, []string{
		"missing  settings            the template of the stage, which says what it needs, is not written. To do: make synth STAGE=prod",
		"missing  stack               sortie-prod is not deployed in 111122223333, eu-west-1. To do: make deploy STAGE=prod",
	}},
	{"an old template", func(w *doctortest.World) { w.Stale = true }, []string{
		"wrong    settings            infra/cdk.json was changed after the template was written. To do: make synth STAGE=prod",
	}},
	{"no credentials", func(w *doctortest.World) { w.NoCredentials = "no EC2 IMDS role found" }, []string{
		"missing  credentials         no AWS credentials. To do: aws configure, or export AWS_PROFILE=… with a profile of the account",
		"unknown  bootstrap           not checked: the credentials do not work. To do: do what the line credentials says",
		"unknown  secret fly          not checked: the credentials do not work. To do: do what the line credentials says",
	}},
	{"an unknown profile", func(w *doctortest.World) { w.Unloadable = "failed to get shared config profile, x" }, []string{
		"wrong    credentials         cannot load the configuration: failed to get shared config profile, x. To do: aws configure, or export AWS_PROFILE=… with a profile of the account",
	}},
	{"an expired login", func(w *doctortest.World) { w.NoCredentials = "the SSO session has expired or is invalid" }, []string{
		"wrong    credentials         the session has expired. To do: aws sso login, or export AWS_PROFILE=… with a profile of the account",
	}},
	{"no region", func(w *doctortest.World) { w.NoRegion = true }, []string{
		"missing  credentials         no region. To do: set stages.prod.region in infra/cdk.json, or AWS_REGION",
	}},
	{"an expired session", func(w *doctortest.World) { w.Cloud.Errors["sts:GetCallerIdentity"] = "ExpiredToken" }, []string{
		"wrong    credentials         the session has expired. To do: aws sso login, or export AWS_PROFILE=… with a profile of the account",
	}},
	{"a deleted access key", func(w *doctortest.World) { w.Cloud.Errors["sts:GetCallerIdentity"] = "InvalidClientTokenId" }, []string{
		"wrong    credentials         AWS does not accept the access key (InvalidClientTokenId). To do: aws configure, with an access key of the account",
	}},
	{"a wrong clock", func(w *doctortest.World) {
		w.Cloud.Errors["sts:GetCallerIdentity"] = "SignatureDoesNotMatch: Signature expired: 20261127T130000Z is now earlier than 20261127T140000Z"
	}, []string{
		"wrong    credentials         AWS refuses the time of this machine's signature. To do: set the clock of this machine",
	}},
	{"another account than that of the settings", func(w *doctortest.World) { w.Entry["account"] = "999988887777" }, []string{
		"wrong    credentials         arn:aws:iam::111122223333:user/sortie is in the account 111122223333, and the stage in 999988887777. To do: export AWS_PROFILE=… with a profile of the account 999988887777",
	}},
	{"another account than that of the template", func(w *doctortest.World) { w.Account = "999988887777" }, []string{
		"wrong    credentials         arn:aws:iam::111122223333:user/sortie is in the account 111122223333, and the stage in 999988887777",
	}},
	{"no bootstrap", func(w *doctortest.World) { w.Cloud.Bootstrap = "" }, []string{
		"missing  bootstrap           the CDK's bootstrap stack is not in 111122223333, eu-west-1. To do: infra/.cdk/node_modules/.bin/cdk bootstrap aws://111122223333/eu-west-1",
	}},
	{"a failed bootstrap", func(w *doctortest.World) { w.Cloud.Bootstrap, w.Cloud.Toolkit = "", "ROLLBACK_COMPLETE" }, []string{
		"wrong    bootstrap           the stack CDKToolkit is ROLLBACK_COMPLETE. To do: aws cloudformation delete-stack --stack-name CDKToolkit --region eu-west-1 && infra/.cdk/node_modules/.bin/cdk bootstrap aws://111122223333/eu-west-1",
	}},
	{"an old bootstrap", func(w *doctortest.World) { w.Cloud.Bootstrap = "5" }, []string{
		"wrong    bootstrap           the bootstrap stack has version 5, want at least 6. To do: infra/.cdk/node_modules/.bin/cdk bootstrap aws://111122223333/eu-west-1",
	}},
	{"a new account", func(w *doctortest.World) { w.Cloud.Concurrency = 10 }, []string{
		"wrong    concurrency         10 concurrent executions, and the settings need 100. To do: aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000 --region eu-west-1",
	}},
	{"an open request", func(w *doctortest.World) { w.Cloud.Concurrency, w.Cloud.Requested = 10, 1000 }, []string{
		"wrong    concurrency         10 concurrent executions, and the settings need 100. To do: wait for AWS's answer to the request for 1000, which comes by mail",
	}},
	{"reserved concurrency", func(w *doctortest.World) { w.Prod.Reserved = map[string]int{"callback": 900, "stream": 60} }, []string{
		"wrong    concurrency         1000 concurrent executions, and the settings need 1060. To do: aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1060 --region eu-west-1",
	}},
	{"the reserved concurrency of others", func(w *doctortest.World) {
		w.Prod.Reserved, w.Cloud.Reserved = map[string]int{"callback": 50}, 950 // including the stage's own
	}, []string{
		"wrong    concurrency         1000 concurrent executions, and the settings need 150 beside 900 that other functions reserve. To do: aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1050",
	}},
	{"many readers and machines", func(w *doctortest.World) { w.Prod.Readers, w.Prod.Machines = 950, 10_000 }, []string{
		"wrong    concurrency         1000 concurrent executions, and the settings need 1050",
	}},
	{"no permission for the quota", func(w *doctortest.World) { w.Cloud.Errors["lambda:GetAccountSettings"] = "AccessDeniedException" }, []string{
		"unknown  concurrency         not checked: no permission for lambda:GetAccountSettings. To do: allow arn:aws:iam::111122223333:user/sortie lambda:GetAccountSettings, then repeat sortie stage doctor prod",
	}},
	{"a region without the service", func(w *doctortest.World) {
		w.Prod.Rate, w.Cloud.Errors["servicequotas:GetServiceQuota"] = 9000, "NoSuchResourceException"
	}, []string{
		"unknown  requests            not checked: NoSuchResourceException: User: arn:aws:iam::111122223333:user/sortie is not authorized to perform: servicequotas:GetServiceQuota on this resource. To do: repeat sortie stage doctor prod; if that fails, too, check the network and the proxy of this machine",
	}},
	{"a rate above the account's", func(w *doctortest.World) { w.Prod.Rate, w.Cloud.Requests = 9000, 2500 }, []string{
		"wrong    requests            2500 requests a second for the account, and the settings have up to 9000 for a method. To do: aws service-quotas request-service-quota-increase --service-code apigateway --quota-code L-8A5B8E43 --desired-value 9000 --region eu-west-1, or lower stages.prod.workerRate",
	}},
}

// stackFaults are faults of the stack and its resources.
var stackFaults = []fault{
	{"no stack", func(w *doctortest.World) { w.Cloud.Status = "" }, []string{
		"missing  stack               sortie-prod is not deployed in 111122223333, eu-west-1. To do: make deploy STAGE=prod",
		"missing  secret clients      the stage is not deployed. To do: make deploy STAGE=prod, then bin/sortie tokens add ci --stage prod",
		"unknown  mail                not checked: the stage is not deployed. To do: make deploy STAGE=prod",
	}},
	{"a stack that is created", func(w *doctortest.World) { w.Cloud.Status = "CREATE_IN_PROGRESS" }, []string{
		"missing  stack               sortie-prod is CREATE_IN_PROGRESS. To do: aws cloudformation wait stack-create-complete" + ofStack,
	}},
	{"a failed first deployment", func(w *doctortest.World) {
		w.Cloud.Status, w.Cloud.Protected = "ROLLBACK_COMPLETE", true
		w.Cloud.Events = []doctortest.Event{
			{ID: "sortie-prod", Status: "ROLLBACK_COMPLETE"},
			{ID: "Export", Status: "CREATE_FAILED", Reason: "Resource creation cancelled"},
			{ID: "Callback", Status: "CREATE_FAILED", Reason: "decreases account's\nUnreservedConcurrentExecution below its minimum value"},
			{ID: "Bus", Status: "CREATE_COMPLETE"},
			{ID: "sortie-prod", Status: "CREATE_IN_PROGRESS"},
			{ID: "Old", Status: "CREATE_FAILED", Reason: "of an earlier deployment"},
		}
	}, []string{
		"wrong    stack               sortie-prod is ROLLBACK_COMPLETE: Callback: decreases account's UnreservedConcurrentExecution below its minimum value. " +
			"To do: correct the cause, then aws cloudformation update-termination-protection --no-enable-termination-protection" + ofStack + " && aws cloudformation delete-stack" + ofStack +
			" && aws cloudformation wait stack-delete-complete" + ofStack + " && make deploy STAGE=prod",
		"missing  secret fly          the stage is not deployed. To do: make deploy STAGE=prod, then fly tokens create org personal --json | bin/sortie secrets put fly --stage prod",
	}},
	{"a failed update", func(w *doctortest.World) {
		w.Cloud.Status, w.Cloud.Events = "UPDATE_ROLLBACK_COMPLETE", []doctortest.Event{{ID: "Domain", Status: "UPDATE_FAILED", Reason: "Invalid certificate"}}
	}, []string{
		"wrong    stack               sortie-prod is UPDATE_ROLLBACK_COMPLETE, so the last deployment had no effect: Domain: Invalid certificate. To do: correct the cause, then make deploy STAGE=prod",
	}},
	{"a failed rollback", func(w *doctortest.World) { w.Cloud.Status = "UPDATE_ROLLBACK_FAILED" }, []string{
		"wrong    stack               sortie-prod is UPDATE_ROLLBACK_FAILED. To do: correct the cause, then aws cloudformation continue-update-rollback" + ofStack,
	}},
	{"an update without a rollback", func(w *doctortest.World) { w.Cloud.Status = "UPDATE_FAILED" }, []string{
		"wrong    stack               sortie-prod is UPDATE_FAILED. To do: aws cloudformation rollback-stack" + ofStack + ", then make deploy STAGE=prod",
	}},
	{"a rollback that continues", func(w *doctortest.World) { w.Cloud.Status = "UPDATE_ROLLBACK_IN_PROGRESS" }, []string{
		"missing  stack               sortie-prod is UPDATE_ROLLBACK_IN_PROGRESS. To do: aws cloudformation wait stack-rollback-complete" + ofStack,
	}},
	{"no permission for the stack", func(w *doctortest.World) { w.Cloud.Errors["cloudformation:DescribeStacks"] = "AccessDenied" }, []string{
		"unknown  stack               not checked: no permission for cloudformation:DescribeStacks. To do: allow arn:aws:iam::111122223333:user/sortie cloudformation:DescribeStacks, then repeat sortie stage doctor prod",
		"unknown  domain              not checked: the stack could not be read. To do: do what the line stack says",
		"ok       secret fly          sortie/prod/fly has token",
	}},
	{"an unconfirmed mail", func(w *doctortest.World) { w.Cloud.Subscriptions["ops@example.org"] = "PendingConfirmation" }, []string{
		`missing  mail                ops@example.org has not confirmed the subscription of the alarms. To do: follow the link "Confirm subscription" in the mail of AWS Notifications; another mail is sent by ` + subscribe,
	}},
	{"no subscription", func(w *doctortest.World) { clear(w.Cloud.Subscriptions) }, []string{
		"missing  mail                ops@example.org is not subscribed to the alarms: the mail was not answered for three days, or the address unsubscribed. To do: " + subscribe,
	}},
	{"settings that are not deployed", func(w *doctortest.World) {
		before := w.Prod
		before.Mail, before.Secrets = "", []string{"clients", "fly", "outputs"}
		w.Cloud.Template = before.JSON()
	}, []string{
		"missing  mail                the deployed stage does not send alarms to ops@example.org. To do: make deploy STAGE=prod",
		"missing  secret traces       the deployed stage does not have it yet. To do: make deploy STAGE=prod, then bin/sortie secrets put traces --stage prod <traces.json",
	}},
	{"no topic", func(w *doctortest.World) { w.Cloud.Errors["sns:ListSubscriptionsByTopic"] = "NotFound" }, []string{
		"missing  mail                there is no topic sortie-prod-alarms. To do: make deploy STAGE=prod",
	}},
	{"no certificate", func(w *doctortest.World) { clear(w.Cloud.Certificates) }, []string{
		"missing  certificate         there is no certificate " + doctortest.Certificate + ". To do: " + requested,
	}},
	{"an unproved domain", func(w *doctortest.World) {
		c := w.Cloud.Certificates[doctortest.Certificate]
		c["Status"], c["DomainValidationOptions"] = "PENDING_VALIDATION", []any{map[string]any{
			"ValidationStatus": "PENDING_VALIDATION", "ResourceRecord": map[string]any{"Name": "_a.sortie.example.org.", "Type": "CNAME", "Value": "_b.acm-validations.aws."},
		}}
	}, []string{
		"missing  certificate         AWS has not seen the proof that the domain is yours. To do: add the DNS record _a.sortie.example.org. CNAME _b.acm-validations.aws.",
	}},
	{"an expired certificate", func(w *doctortest.World) { w.Cloud.Certificates[doctortest.Certificate]["Status"] = "EXPIRED" }, []string{
		"wrong    certificate         it is EXPIRED. To do: " + requested,
	}},
	{"the certificate of another domain", func(w *doctortest.World) {
		w.Cloud.Certificates[doctortest.Certificate]["SubjectAlternativeNames"] = []string{"*.example.com", "example.org", "*.sortie.example.org"}
	}, []string{
		"wrong    certificate         it is for *.example.com, example.org, *.sortie.example.org and not for sortie.example.org. To do: " + requested,
	}},
	{"the certificate of another region", func(w *doctortest.World) {
		w.Prod.Certificate = "arn:aws:acm:us-east-1:111122223333:certificate/one"
	}, []string{
		"wrong    certificate         it is of the region us-east-1, and the stage of eu-west-1. To do: " + requested,
	}},
	{"no DNS record", func(w *doctortest.World) { clear(w.CNAMEs) }, []string{
		"missing  domain              the DNS does not have sortie.example.org. To do: " + recorded,
	}},
	{"another DNS record", func(w *doctortest.World) {
		w.CNAMEs["sortie.example.org"], w.Hosts["sortie.example.org"] = "old.example.org.", []string{"198.51.100.7"}
	}, []string{
		"wrong    domain              sortie.example.org leads to 198.51.100.7. To do: replace its records: " + recorded,
	}},
	{"no domain in the deployed stage", func(w *doctortest.World) { delete(w.Cloud.Outputs, "DomainTarget") }, []string{
		"missing  domain              the deployed stage has no domain. To do: make deploy STAGE=prod",
	}},
	{"an API that cannot be reached", func(w *doctortest.World) { w.Cloud.Outputs["URL"] = "http://127.0.0.1:1/prod" }, []string{
		"wrong    api                 http://127.0.0.1:1/prod does not answer: dial tcp 127.0.0.1:1: connect: connection refused. To do: do what the lines before say, then repeat sortie stage doctor prod",
	}},
	{"an API that fails", func(w *doctortest.World) { w.Health = http.StatusBadGateway }, []string{
		"/prod/healthz answers with the status 502. To do: do what the lines before say; the cause is in the log: aws logs tail $(aws lambda get-function-configuration --function-name sortie-prod-tasks --query LoggingConfig.LogGroup --output text --region eu-west-1) --since 10m --region eu-west-1",
	}},
}

// accessFaults are faults of secrets, apps and buckets.
var accessFaults = []fault{
	{"no client", func(w *doctortest.World) { w.Cloud.Secrets["sortie/prod/clients"] = `{"records":[]}` }, []string{
		"missing  secret clients      the stage has no client token. To do: bin/sortie tokens add ci --stage prod",
	}},
	{"an empty secret", func(w *doctortest.World) { delete(w.Cloud.Secrets, "sortie/prod/clients") }, []string{
		"missing  secret clients      sortie/prod/clients has no value. To do: bin/sortie tokens add ci --stage prod",
		"unknown  canary              not checked: it needs the secrets canary and clients. To do: do what their lines say",
	}},
	{"a deleted secret", func(w *doctortest.World) { w.Cloud.Deleted["sortie/prod/fly"] = true }, []string{
		"wrong    secret fly          sortie/prod/fly is scheduled for deletion. To do: aws secretsmanager restore-secret --secret-id sortie/prod/fly --region eu-west-1",
		"unknown  fly runs-one        not checked: it needs the secret fly. To do: do what its line says",
	}},
	{"a malformed secret", func(w *doctortest.World) { w.Cloud.Secrets["sortie/prod/fly"] = `{"tokens": ["s3cret"]}` }, []string{
		`wrong    secret fly          sortie/prod/fly: it has a field "tokens" that is not known. To do: fly tokens create org personal --json | bin/sortie secrets put fly --stage prod`,
	}},
	{"a placeholder", func(w *doctortest.World) { w.Cloud.Secrets["sortie/prod/fly"] = `{"token": "FlyV1 <token>"}` }, []string{
		"wrong    secret fly          sortie/prod/fly: token: a placeholder, want the real value. To do: fly tokens create org personal --json",
	}},
	{"placeholders of keys", func(w *doctortest.World) {
		w.Outputs["accessKeyId"], w.Outputs["workerSecretAccessKey"] = "YOUR_KEY", "changeme"
	}, []string{
		"wrong    secret outputs      sortie/prod/outputs: accessKeyId, workerSecretAccessKey: a placeholder, want the real value. To do: " + putOutputs + "a file with {",
		"unknown  bucket              not checked: it needs the secret outputs. To do: do what its line says",
	}},
	{"no headers of traces", func(w *doctortest.World) { w.Cloud.Secrets["sortie/prod/traces"] = `{"headers":{}}` }, []string{
		`wrong    secret traces       sortie/prod/traces: headers are missing. To do: bin/sortie secrets put traces --stage prod <traces.json, a file with {"headers": {"NAME": "VALUE"}}`,
	}},
	{"a kubeconfig that needs files", func(w *doctortest.World) {
		w.Prod.Secrets = append(w.Prod.Secrets, "kubernetes")
		w.Cloud.Secrets["sortie/prod/kubernetes"] = `{"kubeconfig": "current-context: a\ncontexts: [{name: a, context: {cluster: c, user: u}}]\n"}`
	}, []string{
		`kubeconfig: the context names the cluster "c", which is missing. To do: jq -n --rawfile kubeconfig FILE '{$kubeconfig}' | bin/sortie secrets put kubernetes --stage prod, with a kubeconfig as FILE`,
	}},
	{"no permission for secrets", func(w *doctortest.World) {
		w.Cloud.Errors["secretsmanager:GetSecretValue"] = "AccessDeniedException"
	}, []string{
		"unknown  secret fly          not checked: no permission for secretsmanager:GetSecretValue. To do: allow arn:aws:iam::111122223333:user/sortie secretsmanager:GetSecretValue, then repeat",
	}},
	{"a revoked token of Fly", func(w *doctortest.World) { w.Cloud.Secrets["sortie/prod/fly"] = `{"token": "FlyV1 fm2_other"}` }, []string{
		"wrong    fly runs-one        Fly does not accept the token of the secret fly. To do: fly tokens create org personal --json | bin/sortie secrets put fly --stage prod",
	}},
	{"an app that does not exist", func(w *doctortest.World) { w.Prod.FlyApps = []string{"runs-one", "runs-three"} }, []string{
		"ok       fly runs-one        an app of the organisation local",
		"missing  fly runs-three      Fly has no such app. To do: fly apps create runs-three --org local; if the name is taken, choose another in stages.prod.flyApps, because names are global",
	}},
	{"the token of one app", func(w *doctortest.World) { w.Fly["runs-two"] = http.StatusForbidden }, []string{
		"wrong    fly runs-two        the token reaches other apps and not this one: it is one of a single app, or the app is in another organisation than local. To do: " + flyToken + "; if the app is not yours, choose another name in stages.prod.flyApps, because names are global",
	}},
	{"a name of another organisation", func(w *doctortest.World) {
		w.Prod.FlyApps = w.Prod.FlyApps[:1]
		w.Fly["runs-one"] = http.StatusForbidden
	}, []string{
		"wrong    fly runs-one        the token does not reach the app: it is one of another app, or another organisation has the name. To do: fly tokens create org personal --json | bin/sortie secrets put fly --stage prod; if the app is not yours, choose another name in stages.prod.flyApps",
	}},
	{"Fly fails", func(w *doctortest.World) { w.Fly["runs-one"] = http.StatusServiceUnavailable }, []string{
		"unknown  fly runs-one        not checked: Fly answers with the status 503. To do: repeat sortie stage doctor prod",
		"ok       fly runs-two        ",
	}},
	{"no bucket", func(w *doctortest.World) { w.Prod.Accepted = "elsewhere" }, []string{
		"missing  bucket accepted     elsewhere: there is no such bucket. To do: npx wrangler r2 bucket create elsewhere",
		"ok       bucket uploads      arke-exports: ",
		"unknown  key workers         not checked against the bucket elsewhere. To do: do what its line says",
	}},
	{"a deleted bucket of the stack", func(w *doctortest.World) {
		w.Prod.Own, w.Prod.Endpoint, w.Cloud.Outputs["AcceptedBucket"] = true, w.Outputs["endpoint"].(string), "elsewhere"
	}, []string{
		"missing  bucket accepted     elsewhere: it was deleted. To do: aws s3api create-bucket --bucket elsewhere --region eu-west-1 --create-bucket-configuration LocationConstraint=eu-west-1, then make deploy STAGE=prod",
	}},
	{"no account of Cloudflare", func(w *doctortest.World) { delete(w.Outputs, "endpoint") }, []string{
		"wrong    secret outputs      sortie/prod/outputs: accountId is missing, want that of Cloudflare, or an endpoint. To do: " + putOutputs,
	}},
	{"a wrong account of Cloudflare", func(w *doctortest.World) { delete(w.Outputs, "endpoint"); w.Outputs["accountId"] = "acme" }, []string{
		"wrong    secret outputs      sortie/prod/outputs: accountId is malformed, want the 32 hexadecimal digits of Cloudflare. To do: " + putOutputs,
	}},
	{"a wrong key", func(w *doctortest.World) { w.Outputs["secretAccessKey"] = "s3cret-of-another" }, []string{
		"wrong    bucket uploads      arke-exports: the store does not accept accessKeyId and secretAccessKey of the secret outputs. To do: " + putOutputs + "with a key of both buckets",
	}},
	{"a key of one bucket", func(w *doctortest.World) {
		w.Outputs["accessKeyId"], w.Outputs["secretAccessKey"] = "worker-key", "s3cret-of-the-worker"
		w.Outputs["workerAccessKeyId"], w.Outputs["workerSecretAccessKey"] = "owner-key", "s3cret-of-the-owner"
	}, []string{
		"wrong    bucket accepted     arke-exports-accepted: the key of the secret outputs may not list, read and write it, or it does not exist. To do: " + putOutputs,
	}},
	{"a worker's key of both buckets", func(w *doctortest.World) {
		w.Prod.Uploads, w.Prod.Accepted = w.Prod.Accepted, w.Prod.Uploads // the store lets workers use only its own uploads bucket
		w.Lifecycles = map[string]string{"arke-exports": doctortest.Rules(3650, 2), "arke-exports-accepted": doctortest.Rules(15, 2)}
	}, []string{
		"wrong    key workers         workerAccessKeyId of the secret outputs may not write arke-exports-accepted. To do: " + putOutputs + "with a worker key that reads and writes objects of arke-exports-accepted alone",
	}},
	{"a worker's key that is Sortie's", func(w *doctortest.World) { w.Outputs["workerAccessKeyId"] = "owner-key" }, []string{
		"wrong    secret outputs      sortie/prod/outputs: workerAccessKeyId is accessKeyId, want a key that reaches the uploads bucket alone",
	}},
	{"an unknown worker's key", func(w *doctortest.World) { w.Outputs["workerAccessKeyId"] = "unknown-key" }, []string{
		"wrong    key workers         the store does not accept workerAccessKeyId and workerSecretAccessKey of the secret outputs. To do: " + putOutputs,
	}},
	{"no rules", func(w *doctortest.World) { w.Lifecycles["arke-exports"] = "" }, []string{
		"missing  lifecycle uploads   arke-exports: no rule deletes what Sortie could not. To do: npx wrangler r2 bucket lifecycle add arke-exports expire --expire-days 15 --abort-multipart-days 2 --force",
	}},
	{"a rule that deletes too early", func(w *doctortest.World) { w.Lifecycles["arke-exports-accepted"] = doctortest.Rules(366, 2) }, []string{
		"wrong    lifecycle accepted  arke-exports-accepted: a rule deletes objects after 366 days, which Sortie may still use. To do: remove that rule, then npx wrangler r2 bucket lifecycle add arke-exports-accepted expire --expire-days 3650",
	}},
	{"a key that does not read rules", func(w *doctortest.World) { w.Lifecycles["arke-exports"] = "AccessDenied" }, []string{
		"unknown  lifecycle uploads   arke-exports: not checked: the key of the secret outputs may not read the rules, and need not. To do: compare npx wrangler r2 bucket lifecycle list arke-exports with 15 days for objects and 2 for unfinished uploads, then pass --skip lifecycle",
	}},
	{"a canary that is no client", func(w *doctortest.World) {
		w.Cloud.Secrets["sortie/prod/canary"] = `{"token": "s3cret-of-another"}`
	}, []string{
		"wrong    canary              its token is not one of the stage's client tokens. To do: " + anotherKey,
	}},
	{"a canary that may not export", func(w *doctortest.World) {
		w.Cloud.Secrets["sortie/prod/clients"] = withCanary(func(t *access.Token) { t.Scopes = []access.Scope{access.RunsRead} })
	}, []string{
		"wrong    canary              its token lacks the scope runs:write. To do: " + anotherKey,
	}},
	{"a canary that has expired", func(w *doctortest.World) {
		w.Cloud.Secrets["sortie/prod/clients"] = withCanary(func(t *access.Token) { t.ExpiresAt = time.Unix(1, 0) })
	}, []string{
		"wrong    canary              its token has expired. To do: " + anotherKey,
	}},
}

// TestDoctorSaysWhatToDo injects one fault per row.
func TestDoctorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, f := range slices.Concat(accountFaults, stackFaults, accessFaults) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			w := doctortest.New(t)
			f.inject(w)
			got := w.Run("prod")
			if got.Code != 1 || !strings.Contains(got.Stderr, "checks are not ok") {
				t.Errorf("got the code %d and %q, want 1 and the number of checks", got.Code, got.Stderr)
			}
			for _, line := range f.lines {
				if !strings.Contains(got.Stdout, line) {
					t.Errorf("got\n%s\nwant %q", got.Stdout, line)
				}
			}
			if strings.Contains(got.Stdout+got.Stderr, "s3cret") {
				t.Errorf("got the value of a secret in\n%s%s", got.Stdout, got.Stderr)
			}
			for line := range strings.Lines(got.Stdout) {
				if ok := strings.HasPrefix(line, "ok "); ok == strings.Contains(line, ". To do: ") {
					t.Errorf("got %q, want something to do in each line that is not ok, and only there", line)
				}
				_, toDo, _ := strings.Cut(strings.TrimSpace(line), ". To do: ")
				if err := doctortest.CheckSteps(toDo); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestWrongStepsAreFound checks that CheckSteps refuses wrong commands.
func TestWrongStepsAreFound(t *testing.T) {
	t.Parallel()
	for _, toDo := range []string{
		"aws iam create-usr --user-name x", "aws sns subscribe --topic-arn x --protocol email", "aws iam create-user --user-name x --name y", "fly apps create --org x",
		"do this, then bin/sortie secrets put --stage prod", "make synth", "aws logs tail $(aws lambda get-function) --since 1m", "sortie stage docter prod",
	} {
		if err := doctortest.CheckSteps(toDo); err == nil {
			t.Errorf("%s: got no error", toDo)
		}
	}
}
