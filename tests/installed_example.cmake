# Installs BUILD into BUILD/stage, builds the project SOURCE against it and runs every program that it makes.
set(stage ${BUILD}/stage)
set(work ${BUILD}/example)
file(REMOVE_RECURSE ${stage} ${work})

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${stage})
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${work} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
    -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${stage} -DCMAKE_RUNTIME_OUTPUT_DIRECTORY=${work}/bin)
run(${CMAKE_COMMAND} --build ${work})
file(GLOB programs ${work}/bin/*)
if(NOT programs)
  message(FATAL_ERROR "${SOURCE} made no program")
endif()
foreach(program ${programs})
  run(${program})
endforeach()
run(${stage}/bin/picoc --help)
