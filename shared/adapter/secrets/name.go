package secrets

import "strings"

// Name returns the secret's name in a stage.
func Name(stage, kind string) string { return "sortie/" + stage + "/" + kind }

// SeedName returns the name of the parameter with the seed of a stage's key of events.
func SeedName(stage string) string { return "/sortie/" + stage + "/events" }

// nameOf returns the name of a secret from its name or ARN. An ARN ends in the name, a hyphen
// and six random characters.
func nameOf(id string) string {
	_, name, isARN := strings.Cut(id, ":secret:")
	const suffix = len("-AbCdEf")
	if !isARN || len(name) <= suffix || name[len(name)-suffix] != '-' {
		return id
	}
	return name[:len(name)-suffix]
}

// hint returns the command that fills the secret.
func hint[D Document](id string) string {
	stage := "STAGE"
	if parts := strings.Split(nameOf(id), "/"); len(parts) == 3 && parts[0] == "sortie" {
		stage = parts[1]
	}
	return "sortie secrets put " + kindOf[D]() + " --stage " + stage
}

func kindOf[D Document]() string {
	var document D
	return document.kind()
}
