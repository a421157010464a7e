package stack

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/shared/adapter/secrets"
)

// addSecrets adds a secret without a value for each kind of shared/adapter/secrets. "sortie
// secrets put" stores the values, so that no template contains them. The secrets are deleted
// with the stack even if data is retained: their values can be issued again, and a remaining
// secret would block its name for the next deployment.
func (b *builder) addSecrets() {
	b.secrets = map[string]awssecretsmanager.CfnSecret{}
	meanings := secrets.Meanings()
	for _, kind := range secrets.Kinds() {
		if kind == canarySecret && b.settings.CanaryPI == "" || kind == tracesSecret && !b.settings.TraceHeaders ||
			kind == flySecret && len(b.settings.FlyApps) == 0 || kind == kubernetesSecret && b.settings.KubernetesCluster == "" {
			continue
		}
		name := secrets.Name(b.settings.Stage, kind)
		b.secrets[kind] = awssecretsmanager.NewCfnSecret(b.stack, jsii.String("Secret"+capital(kind)), &awssecretsmanager.CfnSecretProps{
			Name: jsii.String(name), Description: jsii.String(meanings[kind]),
		})
		b.result(capital(kind)+"Secret", name, "the secret with "+meanings[kind])
	}
}

// eventSeed returns the grant for the parameter with the seed of the key of events. The relay
// creates the parameter, because a template cannot create an encrypted one.
func (b *builder) eventSeed() grant {
	name := secrets.SeedName(b.settings.Stage)
	return grant{map[string]string{"SORTIE_EVENT_SEED": name}, []statement{{
		actions: []string{"ssm:GetParameter", "ssm:PutParameter"}, resources: []string{b.arn("ssm", "parameter", name[1:], awscdk.ArnFormat_SLASH_RESOURCE_NAME)},
	}}}
}

// namedSecrets returns the ARN of all named secrets of the stage. "sortie secrets put" creates
// them.
func (b *builder) namedSecrets() string {
	return b.arn("secretsmanager", "secret", secrets.Name(b.settings.Stage, secrets.Jobs+"*"), awscdk.ArnFormat_COLON_RESOURCE_NAME)
}

// fillOutputsSecret sets the outputs secret to the keys. In the template they are references.
func (b *builder) fillOutputsSecret(keys secrets.Outputs) {
	text, err := json.Marshal(keys)
	if err != nil { // a struct of strings
		panic(err)
	}
	b.secrets["outputs"].SetSecretString(jsii.String(string(text)))
}

// secretGrant returns the grant for the secret of a kind, with the variables of more that are
// not empty.
func (b *builder) secretGrant(kind string, more map[string]string) grant {
	id := *b.secrets[kind].Ref()
	env := map[string]string{"SORTIE_SECRET_" + strings.ToUpper(kind): id}
	maps.Copy(env, more)
	maps.DeleteFunc(env, func(_, value string) bool { return value == "" })
	return grant{env, []statement{{actions: []string{"secretsmanager:GetSecretValue"}, resources: []string{id}}}}
}
