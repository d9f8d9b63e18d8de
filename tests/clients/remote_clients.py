"""The official clients of memory services against the doubles of the tests.

    python remote_clients.py SERVICE URL KEY

A double that refuses a request of the official client is wrong. The test that starts this program
asks the double for its refusals afterwards.
"""

import sys

SAID = "I like tea"


def mem0(url, key):
    """mem0ai 2 (API v3) and 1 (API v1 and v2) have the same calls."""
    from mem0 import MemoryClient

    client = MemoryClient(api_key=key, host=url)
    client.add([{"role": "user", "content": SAID}], user_id="ann", metadata={"session": "monday"})
    found = client.search("tea?", filters={"AND": [{"user_id": "ann"}]}, top_k=5)
    return [one["memory"] for one in found["results"]]


def zep(url, key):
    from zep_cloud.client import Zep
    from zep_cloud.types import Message

    client = Zep(api_key=key, base_url=f"{url}/api/v2")
    client.user.add(user_id="ann")
    client.thread.create(thread_id="monday", user_id="ann")
    at = "2026-01-31T12:00:00Z"
    message = Message(role="user", content=SAID, created_at=at)
    client.thread.add_messages("monday", messages=[message])
    assert client.thread.list_all(page_size=1).threads[0].thread_id == "monday"
    found = client.graph.search(user_id="ann", query="tea?", scope="edges", limit=5)
    return [edge.fact for edge in found.edges]


def acontext(url, key):
    from acontext import AcontextClient
    from acontext.errors import APIError

    client = AcontextClient(api_key=key, base_url=f"{url}/api/v1")
    assert client.ping() == "pong"
    name = "6f9619ff-8b86-8011-b42d-00cf4fc964ff"
    session = client.sessions.create(user="ann", use_uuid=name)
    try:
        client.sessions.create(user="ann", use_uuid=name)
        raise AssertionError("a session was made twice")
    except APIError as error:
        assert (error.status_code, error.code) == (409, 409), error
    client.sessions.store_message(session.id, blob={"role": "user", "content": SAID}, format="openai")
    assert client.sessions.list(limit=1).items[0].id == name
    mark = {"source": "mnemon"}
    space = client.learning_spaces.create(user="ann", meta=mark)
    listed = client.learning_spaces.list(user="ann", limit=1, filter_by_meta=mark)
    assert [one.id for one in listed.items] == [space.id]
    learning = client.learning_spaces.learn(space.id, session_id=session.id)
    assert learning.status == "pending"
    skills = client.learning_spaces.list_skills(space.id)
    files = [client.skills.get_file(skill_id=skill.id, file_path="SKILL.md") for skill in skills]
    return [file.content.raw for file in files]


def main():
    service, url, key = sys.argv[1:]
    call = {"mem0": mem0, "mem0-v1": mem0, "zep": zep, "acontext": acontext}[service]
    found = call(url, key)
    assert found == [SAID], found


main()
