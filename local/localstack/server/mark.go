package server

import "bytes"

// ofServer reports whether a command line, followed by a space, is that of a
// process of the server with this folder. The server has the folder as an
// argument, DynamoDB Local as a property, a bootstrap is a file below it, and a
// machine of a test has a file of the folder's "machines" as an argument.
func ofServer(line []byte, dir string) bool {
	server := bytes.Contains(line, []byte(" localstack.runtime.main "+dir+" "))
	dynamo := bytes.Contains(line, []byte(" -Dsortie.localstack="+dir+" "))
	machine := bytes.Contains(line, []byte(" "+dir+"/machines/"))
	return server || dynamo || machine || function(line, dir)
}

func function(line []byte, dir string) bool {
	return bytes.HasPrefix(line, []byte(dir+"/files/tmp/lambda/"))
}
