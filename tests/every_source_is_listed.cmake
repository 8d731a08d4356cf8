# Fails, naming them, when .cpp files stand in no list of CMakeLists.txt or tests/CMakeLists.txt.
file(READ ${ROOT}/CMakeLists.txt listed)
file(READ ${ROOT}/tests/CMakeLists.txt listed_tests)
string(APPEND listed "\n" "${listed_tests}")
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/engine/*.cpp ${ROOT}/layers/*.cpp ${ROOT}/tests/engine/*.cpp
     ${ROOT}/tests/layers/*.cpp ${ROOT}/tests/lessons/*.cpp ${ROOT}/tests/support/*.cpp)
file(GLOB lessons RELATIVE ${ROOT} ${ROOT}/lessons/[a-z]*.cpp)  # the numbered ones are found by their names
foreach(source IN LISTS sources lessons)
    string(REGEX REPLACE "^tests/" "" name ${source})
    string(FIND "${listed}" " ${name}\n" at)
    if(at EQUAL -1)
        list(APPEND forgotten ${source})
    endif()
endforeach()
if(forgotten)
    message(FATAL_ERROR "in no list of sources: ${forgotten}")
endif()
