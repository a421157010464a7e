package server

import "bytes"

// ofServer reports whether a process belongs to the server with this folder. line is the
// command line of the process, followed by a space. The folder is an argument of the server and
// a property of DynamoDB Local. A bootstrap is a file in the folder, and a machine of a test
// has a file of the folder's "machines" as an argument.
func ofServer(line []byte, dir string) bool {
	server := bytes.Contains(line, []byte(" localstack.runtime.main "+dir+" "))
	dynamo := bytes.Contains(line, []byte(" -Dsortie.localstack="+dir+" "))
	machine := bytes.Contains(line, []byte(" "+dir+"/machines/"))
	return server || dynamo || machine || function(line, dir)
}

func function(line []byte, dir string) bool {
	return bytes.HasPrefix(line, []byte(dir+"/files/tmp/lambda/"))
}
