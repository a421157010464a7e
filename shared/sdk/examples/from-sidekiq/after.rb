# Imports contacts with Sortie: an ordinary program. Its exit code decides. after.yaml is the job.
require "json"
require "net/http"

answer = Net::HTTP.get_response(URI(ARGV.fetch(0)))
abort "status #{answer.code}" unless answer.is_a?(Net::HTTPSuccess) # exit code 1: another attempt

begin
  contacts = JSON.parse(answer.body)
  contacts.each { |contact| puts "#{contact.fetch("customer")}: #{contact.fetch("mail")}" }
rescue JSON::ParserError, KeyError => error
  warn "malformed contacts: #{error.message}"
  exit 65 # no other attempt
end
