# Imports contacts with Sidekiq: a process with threads and a Redis server run all the time.
require "json"
require "net/http"
require "sidekiq"
require "sidekiq-cron"

class ImportContacts
  include Sidekiq::Job
  sidekiq_options retry: 5, lock: :until_executed

  def perform(address)
    contacts = JSON.parse(Net::HTTP.get(URI(address)))
    contacts.each { |contact| puts "#{contact.fetch("customer")}: #{contact.fetch("mail")}" }
  end
end

Sidekiq::Cron::Job.create(name: "contacts", cron: "*/15 * * * *", class: "ImportContacts", args: ["http://127.0.0.1:8000/contacts.json"])
